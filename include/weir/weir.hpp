#pragma once
// Everything of Weir's C++ interface but the simulated driver (weir/simulation.hpp).

#include "weir/buffer.hpp"
#include "weir/capture.hpp"
#include "weir/config.hpp"
#include "weir/error.hpp"
#include "weir/lane.hpp"
#include "weir/pool.hpp"
#include "weir/service.hpp"
#include "weir/statistics.hpp"
#include "weir/types.hpp"
#include "weir/version.hpp"
