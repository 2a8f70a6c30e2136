#!/usr/bin/env bash
# Stands in for roofgen in visit_test.py: `fake_roofgen.sh tune SCENE [ARGS]` plays a scene. $FAKE_LOG receives the
# calls.
echo "$*" >>"$FAKE_LOG"
uuid=GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff
measured='"device": {"name": "fake", "origin": "measured"}, "best_variant": "fused", "rejected": {"constraint": 5}'
space='{"schema_version": "1.0.0", "results": [{"times": {}}]}'
variant() {  # NAME VERIFIED ERROR
  echo "{\"name\": \"$1\", \"available\": true, \"verified\": $2,
    \"verification\": {\"rows_checked\": 64, \"error_over_tolerance\": $3},
    \"kernels\": [{\"schedule\": {\"params\": {\"BM\": 128, \"swizzle\": true, \"q_in\": \"shared\"}}}]}"
}
result() {  # [VERIFIED ERROR] of the variant fused
  echo "{\"schema\": \"roofgen.tune.1\", $measured,
    \"variants\": [$(variant fused "${1:-true}" "${2:-0.5}"), $(variant unfused true 0.25)]}"
}

if [[ $1 == emit ]]; then  # emit SCENE [ARGS]
  [[ $2 != fails ]] || { echo "roofgen: nothing to emit" >&2; exit 3; }
  echo "wrote $2"
  exit
fi
if [[ $1 == doctor ]]; then
  gpu='"ordinal": 0, "usable": true, "name": "Fake GPU 9000", "uuid": "'$uuid'", "driver": "570.99", "cuda": "13.0",
    "pci_bus_id": "0", "max_sm_mhz": 1500, "max_memory_mhz": null, "power_limit_w": null, "simulated"'
  case ${FAKE_GPU-} in
    "no doctor") printf 'first\nno option --json\ntry --help\nroofgen: warning: odd\n' >&2; exit 2 ;;
    none) gpus= reason="no CUDA driver: libnone.so.1" ;;
    busy) gpus='{"ordinal": 0, "usable": false, "reason": "in exclusive use"}' reason= ;;
    simulated) gpus="{$gpu: true}" reason= ;;
    *) gpus="{$gpu: false}" reason= ;;
  esac
  echo '{"version": "9.9.9", "nvrtc": {"found": true, "version": "13.0"}, "cache": "'"$HOME"'/.cache",
    "gpu": {"reason": "'"$reason"'"}, "gpus": ['"$gpus"']}'
  exit
fi
shift
case $1 in
  fails) echo "one line" >&2; echo "roofgen: the flag is not there (see $HOME/notes)" >&2; exit 2 ;;
  once) if [[ -e $FAKE_LOG.once ]]; then exit 1; else touch "$FAKE_LOG.once"; result; fi ;;
  hangs) trap '' INT; echo "never ends" >&2; sleep 1000 & wait; sleep 1000 ;;
  asked)
    trap 'kill %1; result; exit 130' INT
    sleep 1000 & echo $! >"$FAKE_LOG.pid"
    mv "$FAKE_LOG.pid" "$FAKE_LOG.asked"
    wait
    exit 1 ;;
  dies) kill -KILL $$ ;;
  leaves) setsid sleep 1000 >/dev/null 2>&1 & echo $! >"$FAKE_LOG.left"; result ;;
  garbage) echo '{"schema": NaN}' ;;
  held) sleep 0.2; if kill -0 "$(<"$FAKE_LOG.holder")"; then result; else exit 1; fi ;;
  silent) ;;
  numbers) echo '[1, 2]' ;;
  several) echo '[{"origin": "measured"}, {"origin": "'"${2-measured}"'"}]' ;;
  wrong) result false 7.5 ;;
  elsewhere) measured="$measured, \"gpu\": {\"uuid\": \"GPU-00000000-0000-0000-0000-000000000000\"}"; result ;;
  here) measured="$measured, \"gpu\": {\"uuid\": \"${uuid^^}\"}"; result ;;
  blocks) rm -r "$FAKE_LOG.d"; touch "$FAKE_LOG.d"; result ;;
  nothing)
    if [[ $# -ge 2 && $2 == */* ]]; then mkdir -p "$2"; echo "$space" >"$2/attention.json"; fi
    echo '{"device": {"origin": "measured"}, "gpu": {"timed": 0}, "best_variant": null,
      "rejected": {"constraint": 90, "verify": 7, "compile": 2}, "variants": []}'
    echo "roofgen: nothing was verified: verify: row 3 is off by 2" >&2
    echo "roofgen: warning: R08 something else" >&2
    exit 1 ;;
  untimed) echo '{"device": {"origin": "simulated"}, "gpu": {"timed": 0}, "best_variant": null, "variants": []}'; exit 130 ;;
  simulated) measured=${measured/measured/simulated}; result ;;
  record)
    mkdir -p "$2"
    if [[ ${3-} == cut ]]; then echo '{"results": [' >"$2/attention.json"; else echo "$space" >"$2/attention.json"; fi
    result ;;
  *) result ;;
esac
