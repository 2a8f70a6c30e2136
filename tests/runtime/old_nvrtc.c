/* The minimum of an old NVRTC that makes the search reject it. */
int nvrtcVersion(int* major, int* minor) {
  *major = 11;
  *minor = 8;
  return 0;
}
