/* As much of an old NVRTC as it takes to be refused. */
int nvrtcVersion(int* major, int* minor) {
  *major = 11;
  *minor = 8;
  return 0;
}
