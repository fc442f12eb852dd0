"""Everything outside TVM that a build needs: targets, the linker and the stub libraries."""
