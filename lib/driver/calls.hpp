#pragma once
// The list of driver calls that Weir uses: each is named here once, and everything else (the table, the loader, the
// counters, the simulated driver) is generated from it.
//
// Columns: the driver's name, the CUDA version in which this signature appeared (it picks the function type and is what
// the loader asks for, so an older driver that still has the signature serves), whether Weir can work without it, and
// whether its time is taken. `counted` calls take less than about 300 ns: two clock reads would distort them.
//
// A header of CUDA 13 spells some names as macros (cuMemAlloc means cuMemAlloc_v2); fields follow, so users write
// the plain name. Strings made with # keep the plain name.

#include <cuda.h>
#include <cudaTypedefs.h>

#if CUDA_VERSION < 12050
#error "Weir needs cuda.h of CUDA 12.5 or newer"
#endif
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#error "Weir's driver table must be compiled for the legacy default stream: the per-thread one has a handle of its own"
#endif

#define WEIR_DRIVER_CALLS(X)                                        \
  X(cuInit, 2000, required, timed)                                  \
  X(cuDriverGetVersion, 2020, required, counted)                    \
  X(cuDeviceGet, 2000, required, counted)                           \
  X(cuDeviceGetCount, 2000, required, counted)                      \
  X(cuDeviceGetName, 2000, required, counted)                       \
  X(cuDeviceGetUuid, 11040, required, counted)                      \
  X(cuDeviceGetAttribute, 2000, required, counted)                  \
  X(cuDeviceTotalMem, 3020, required, counted)                      \
  X(cuDeviceGetPCIBusId, 4010, required, counted)                   \
  X(cuDeviceCanAccessPeer, 4000, required, counted)                 \
  X(cuDeviceGetP2PAttribute, 8000, required, counted)               \
  X(cuDevicePrimaryCtxRetain, 7000, required, timed)                \
  X(cuDevicePrimaryCtxRelease, 11000, required, timed)              \
  X(cuDevicePrimaryCtxGetState, 7000, required, counted)            \
  X(cuCtxGetCurrent, 4000, required, counted)                       \
  X(cuCtxSetCurrent, 4000, required, counted)                       \
  X(cuCtxPushCurrent, 4000, required, counted)                      \
  X(cuCtxPopCurrent, 4000, required, counted)                       \
  X(cuCtxGetDevice, 2000, required, counted)                        \
  X(cuCtxGetId, 12000, required, counted)                           \
  X(cuCtxSynchronize, 2000, required, timed)                        \
  X(cuCtxRecordEvent, 12050, optional, counted)                     \
  X(cuCtxEnablePeerAccess, 4000, required, timed)                   \
  X(cuCtxDisablePeerAccess, 4000, required, timed)                  \
  X(cuMemGetInfo, 3020, required, timed)                            \
  X(cuMemGetAllocationGranularity, 10020, required, counted)        \
  X(cuMemAddressReserve, 10020, required, timed)                    \
  X(cuMemAddressFree, 10020, required, timed)                       \
  X(cuMemCreate, 10020, required, timed)                            \
  X(cuMemRelease, 10020, required, timed)                           \
  X(cuMemMap, 10020, required, timed)                               \
  X(cuMemUnmap, 10020, required, timed)                             \
  X(cuMemSetAccess, 10020, required, timed)                         \
  X(cuMemGetAccess, 10020, required, timed)                         \
  X(cuMemRetainAllocationHandle, 11000, required, timed)            \
  X(cuMemGetAllocationPropertiesFromHandle, 10020, required, timed) \
  X(cuMemGetAddressRange, 3020, required, timed)                    \
  X(cuMemExportToShareableHandle, 10020, required, timed)           \
  X(cuMemAlloc, 3020, required, timed)                              \
  X(cuMemFree, 3020, required, timed)                               \
  X(cuMemAllocAsync, 11020, required, timed)                        \
  X(cuMemFreeAsync, 11020, required, timed)                         \
  X(cuMemHostAlloc, 2020, required, timed)                          \
  X(cuMemFreeHost, 2000, required, timed)                           \
  X(cuMemHostRegister, 6050, required, timed)                       \
  X(cuMemHostUnregister, 4000, required, timed)                     \
  X(cuMemHostGetDevicePointer, 3020, required, counted)             \
  X(cuPointerGetAttribute, 4000, required, counted)                 \
  X(cuMemcpyAsync, 4000, required, timed)                           \
  X(cuMemcpyHtoDAsync, 3020, required, timed)                       \
  X(cuMemcpyDtoHAsync, 3020, required, timed)                       \
  X(cuMemcpyDtoDAsync, 3020, required, timed)                       \
  X(cuMemcpyPeerAsync, 4000, required, timed)                       \
  X(cuMemsetD8Async, 3020, required, timed)                         \
  X(cuMemsetD32Async, 3020, required, timed)                        \
  X(cuStreamCreate, 2000, required, timed)                          \
  X(cuStreamCreateWithPriority, 5050, required, timed)              \
  X(cuStreamDestroy, 4000, required, timed)                         \
  X(cuStreamQuery, 2000, required, counted)                         \
  X(cuStreamSynchronize, 2000, required, timed)                     \
  X(cuStreamWaitEvent, 3020, required, counted)                     \
  X(cuStreamGetId, 12000, required, counted)                        \
  X(cuStreamGetCtx, 9020, required, counted)                        \
  X(cuStreamGetCaptureInfo, 12030, required, counted)               \
  X(cuStreamIsCapturing, 10000, required, counted)                  \
  X(cuStreamBeginCapture, 10010, required, timed)                   \
  X(cuStreamEndCapture, 10000, required, timed)                     \
  X(cuThreadExchangeStreamCaptureMode, 10010, required, counted)    \
  X(cuEventCreate, 2000, required, counted)                         \
  X(cuEventDestroy, 4000, required, counted)                        \
  X(cuEventRecord, 2000, required, counted)                         \
  X(cuEventQuery, 2000, required, counted)                          \
  X(cuEventSynchronize, 2000, required, timed)                      \
  X(cuEventElapsedTime, 2000, required, counted)                    \
  X(cuGraphInstantiateWithFlags, 11040, required, timed)            \
  X(cuGraphLaunch, 10000, required, timed)                          \
  X(cuGraphDestroy, 10000, required, timed)                         \
  X(cuGraphExecDestroy, 10000, required, timed)                     \
  X(cuLaunchHostFunc, 10000, required, timed)                       \
  X(cuStreamWriteValue64, 11070, optional, timed)                   \
  X(cuStreamWaitValue64, 11070, optional, timed)                    \
  X(cuModuleLoadData, 2000, required, timed)                        \
  X(cuModuleUnload, 2000, required, timed)                          \
  X(cuModuleGetFunction, 2000, required, timed)                     \
  X(cuLaunchKernel, 4000, required, timed)                          \
  X(cuGetErrorName, 6000, required, counted)                        \
  X(cuGetErrorString, 6000, required, counted)
