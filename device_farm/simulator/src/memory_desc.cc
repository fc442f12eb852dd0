#include "memory_desc.h"

#include <algorithm>

namespace nnsim {
namespace {

// Writes into `dims` what both know; false when they contradict each other.
bool Combine(const Dims& other, Dims* dims) {
  if (dims->empty()) *dims = other;
  if (other.empty()) return true;
  if (dims->size() != other.size()) return false;
  for (size_t i = 0; i < other.size(); ++i) {
    uint32_t& dim = (*dims)[i];
    if (dim != 0 && other[i] != 0 && dim != other[i]) return false;
    dim = std::max(dim, other[i]);
  }
  return true;
}

bool SameElements(const Tensor& a, const Tensor& b) {
  return a.type == b.type && a.scale == b.scale && a.zero_point == b.zero_point &&
         a.channel_scales == b.channel_scales;
}

}  // namespace

Status MemoryDesc::CheckOpen() const {
  return finished_ ? BadState("the descriptor is finished") : Ok();
}

Status MemoryDesc::AddRole(std::shared_ptr<const Compilation> compilation, bool input,
                           uint32_t index, float frequency) {
  NNSIM_RETURN_IF_ERROR(CheckOpen());
  NNSIM_REQUIRE(compilation->finished(), "the compilation is not finished");
  const Model& model = compilation->model();
  const std::vector<uint32_t>& arguments = input ? model.inputs() : model.outputs();
  NNSIM_REQUIRE(index < arguments.size(), "no such argument");
  NNSIM_REQUIRE(frequency > 0 && frequency <= 1, "the frequency is not in (0, 1]");
  const Tensor& tensor = model.operands()[arguments[index]].tensor;
  const MemoryRole role{std::move(compilation), input, index};
  NNSIM_REQUIRE(std::find(roles_.begin(), roles_.end(), role) == roles_.end(),
                "the role is there already");
  NNSIM_REQUIRE(roles_.empty() || SameElements(tensor, tensor_),
                "the operands of the roles are of different types");
  Tensor combined = tensor;
  NNSIM_REQUIRE(Combine(roles_.empty() ? wanted_ : tensor_.dims, &combined.dims),
                "the operand's shape contradicts what is known of the memory");
  tensor_ = std::move(combined);
  roles_.push_back(role);
  return Ok();
}

Status MemoryDesc::SetDimensions(const Dims& dims) {
  NNSIM_RETURN_IF_ERROR(CheckOpen());
  Dims combined = roles_.empty() ? wanted_ : tensor_.dims;
  NNSIM_REQUIRE(Combine(dims, &combined), "the shape contradicts what is known of the memory");
  (roles_.empty() ? wanted_ : tensor_.dims) = std::move(combined);
  return Ok();
}

Status MemoryDesc::Finish() {
  NNSIM_RETURN_IF_ERROR(CheckOpen());
  NNSIM_REQUIRE(!roles_.empty(), "a descriptor without roles");
  finished_ = true;
  return Ok();
}

Status MemoryDesc::Allocate(std::shared_ptr<Mapping>* mapping) const {
  if (!finished_) return BadState("the descriptor is not finished");
  return Mapping::Allocate(tensor_, roles_, mapping);
}

}  // namespace nnsim
