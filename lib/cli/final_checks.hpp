#pragma once
// What must hold once every block is freed and no thread works: contract C8, and that nobody complained.

#include "cli/faults.hpp"
#include "cli/rig.hpp"

namespace weir::cli {

/// Turns reports of misuse into faults. Call before any work; `faults` must outlive the service.
void watch(rig& r, fault_list& faults);

/// Waits for all streams, then checks the books: nothing live, reserved the sum of its parts, the heap's own check.
void check_quiet(rig& r, fault_list& faults);

/// Trims all; then the driver must hold nothing of Weir's. Then ends the service and the streams, and on simulated
/// devices looks for anything left behind and for faults that the machine saw.
void check_end(rig& r, fault_list& faults);

}  // namespace weir::cli
