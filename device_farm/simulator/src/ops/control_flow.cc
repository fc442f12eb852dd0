#include "ops/control_flow.h"

#include "op_registry.h"

namespace nnsim::ops_control_flow {
namespace {

// Shapes are those of the branch or body that runs: known in the execution only.
Status PrepareBranches(Call& call) {
  call.SetDynamic();
  return Ok();
}

void NotExecutedHere(Call&) {}

const Registrar kOps{
    {kIf, "IF", "", {{4, "BMM?*>?*"}, {4, "bMM?*>?*"}}, PrepareBranches, NotExecutedHere},
    {kWhile, "WHILE", "", {{4, "MM?*>?*"}}, PrepareBranches, NotExecutedHere},
};

}  // namespace
}  // namespace nnsim::ops_control_flow
