/* A fake NVML for tests: plausible numbers of a busy GPU, and a script like that of fake_cuda.c, from
   fake_nvml_script() or else from $ROOFGEN_FAKE_NVML_SCRIPT. FAKE_NVML_OLD omits entry points of newer versions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char script[256];
static int scripted, device_token, started;

void fake_nvml_script(const char* what) {
  snprintf(script, sizeof script, "%s", what);
  scripted = 1;
}
int fake_nvml_started(void) { return started; }

static const char* find(const char* what) {
  if (!scripted) {
    const char* from = getenv("ROOFGEN_FAKE_NVML_SCRIPT");
    snprintf(script, sizeof script, "%s", from ? from : "");
    scripted = 1;
  }
  const char* at = strstr(script, what);
  return at ? at + strlen(what) : NULL;
}

int nvmlInit_v2(void) {
  if (find("no init")) return 9;
  ++started;
  return 0;
}
int nvmlShutdown(void) {
  --started;
  return 0;
}
const char* nvmlErrorString(int status) {
  return status == 9 ? "Driver Not Loaded" : status == 6 ? "Not Found" : "Unknown Error";
}
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  snprintf(version, length, "580.65.06");
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  if (find("no uuid") || strcmp(uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f") != 0) return 6;
  *device = &device_token;
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  if (find("no bus id") || strcmp(id, "0000:3b:00.0") != 0) return 6;
  *device = &device_token;
  return 0;
}
static int clock_of(void* device, int type, unsigned* mhz, unsigned sm, unsigned memory) {
  if (device != &device_token || type < 1 || type > 2) return 2;
  *mhz = type == 1 ? sm : memory;
  return 0;
}
int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) { return clock_of(device, type, mhz, 1740, 3201); }
int nvmlDeviceGetMaxClockInfo(void* device, int type, unsigned* mhz) { return clock_of(device, type, mhz, 1980, 3202); }
int nvmlDeviceGetDefaultApplicationsClock(void* device, int type, unsigned* mhz) {
  return find("no default clock") ? 3 : clock_of(device, type, mhz, 1830, 3203);
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 432100;
  return device == &device_token ? 0 : 2;
}
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
  *milliwatts = 700000;
  return device == &device_token ? 0 : 2;
}
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  *celsius = 61;
  return device == &device_token && sensor == 0 ? 0 : 2;
}
#ifndef FAKE_NVML_OLD
int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  *reasons = 0x4;
  return device == &device_token ? 0 : 2;
}
#endif
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = 0x20;
  return device == &device_token ? 0 : 2;
}
struct process {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};
static int processes(void* device, unsigned* count, struct process* list) {
  const char* number = find("processes ");
  unsigned there = number ? (unsigned)atoi(number) : 1, room = *count;
  if (device != &device_token) return 2;
  *count = there;
  for (unsigned i = 0; i < there && i < room; ++i) list[i] = (struct process){100 + i, 1 << 20, ~0u, ~0u};
  return there > room ? 7 : 0;
}
#ifdef FAKE_NVML_OLD
int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count, struct process* list) {
  return processes(device, count, list);
}
#else
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, struct process* list) {
  return processes(device, count, list);
}
#endif
