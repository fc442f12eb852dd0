"""What stays on the CPU: TVM's LLVM code generator."""
