#include <roofgen/roofgen.h>
#include <stdio.h>

int main(void) {
  roofgen_session* session = NULL;
  roofgen_result* result = NULL;
  if (roofgen_open(&session, NULL) ||
      roofgen_generate(session, "{\"op\": \"softmax\", \"rows\": 64, \"cols\": 256}", &result)) {
    fprintf(stderr, "%s\n", roofgen_error());
    return 1;
  }
  fputs(roofgen_result_text(result), stdout);
  roofgen_result_free(result);
  roofgen_close(session);
  return 0;
}
