#!/usr/bin/env bash
# Runs the two commands of the README on a minimal system: a chroot with HEAD of this repository and a bare Debian tree
# made by debootstrap (minbase: no compiler, no Python, no CUDA).
#
#   tests/fresh/run.sh [--cache DIR] [--suite NAME --mirror URL --components LIST] [--user] [--keep]
#                      [--tutorial | --readme | -- COMMAND...]
#
#   --cache DIR   keeps the bare tree for the next run (default: ~/.cache/roofgen-fresh)
#   --suite NAME  bookworm (default), or another suite known to debootstrap and served by --mirror
#   --mirror URL  default: the first mirror in this machine's apt sources
#   --components  default: main; Ubuntu needs main,universe
#   --user        as an ordinary user with sudo, not as root (installs sudo first)
#   --keep        keeps the tree and prints its path
#   --tutorial    the commands of docs/start/tutorial.md instead of the first two of the README
#   --readme      all of the README that are whole: without "...", a choice in brackets or a file to be made first;
#                 mpirun is not installed here, and `check` and `lint` exit with 1, for they find something
#   COMMAND       instead of the README's commands; each argument is one command line
#
# The slow tests fresh.tutorial and fresh.readme. Exit 77 (skipped): it needs root, debootstrap and a network. The tree
# receives this machine's network configuration (name resolution, apt and pip settings, certificate authorities) and
# nothing else.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=${here%/tests/fresh}

# ---- Inside a separate mount namespace, which removes every mount at the end ----------------------

run_inside() {
  local tree=$1 user=$2 command status=0 start
  shift 2
  mount -t proc proc "$tree/proc"
  mount --rbind /dev "$tree/dev"
  mount -t tmpfs tmpfs "$tree/tmp"
  local enter=(chroot "$tree" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    LANG=C.UTF-8)
  local name
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL PIP_EXTRA_INDEX_URL; do
    if [[ -n ${!name-} ]]; then enter+=("$name=${!name}"); fi
  done
  if [[ -e $tree/etc/host-ca.crt ]]; then enter+=(PIP_CERT=/etc/host-ca.crt); fi
  if [[ $user ]]; then
    "${enter[@]}" bash -c 'apt-get update && apt-get install -y --no-install-recommends sudo && useradd -m new &&
      echo "new ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/new && chown -R new: /srv/roofgen' >/dev/null 2>&1
    enter+=(HOME=/home/new setpriv --reuid new --regid new --init-groups)
  fi
  echo "== bare tree: $("${enter[@]}" sh -c '. /etc/os-release; echo "$PRETTY_NAME, $(dpkg -l | grep -c ^ii) packages"'),\
 $(nproc) cores; g++ $("${enter[@]}" sh -c 'command -v g++ || echo absent'), python3\
 $("${enter[@]}" sh -c 'command -v python3 || echo absent'), CUDA\
 $("${enter[@]}" sh -c 'ls -d /usr/local/cuda* 2>/dev/null || echo absent')"
  for command in "$@"; do
    echo "== \$ $command"
    start=$(date +%s.%N)
    "${enter[@]}" bash -c "cd /srv/roofgen && $command" </dev/null || status=$?
    printf '== exit %d after %.1f s: %s\n' "$status" "$(echo "$(date +%s.%N) - $start" | awk '{print $1 - $3}')" "$command"
    [[ $status == 0 ]] || break
  done
  echo "== build/ takes $(du -sm "$tree/srv/roofgen/build" | cut -f1) MB;\
 $("${enter[@]}" sh -c 'dpkg -l | grep -c ^ii') packages are installed now"
  return "$status"
}

if [[ ${1-} == --inside ]]; then
  shift
  run_inside "$@"
  exit
fi

# ---- Making the tree -------------------------------------------------------------------------------

cache=${XDG_CACHE_HOME:-$HOME/.cache}/roofgen-fresh
suite=bookworm mirror='' components=main user='' keep='' page=''
while [[ $# -gt 0 ]]; do
  case $1 in
    --cache) cache=$2; shift 2 ;;
    --suite) suite=$2; shift 2 ;;
    --mirror) mirror=$2; shift 2 ;;
    --components) components=$2; shift 2 ;;
    --user) user=1; shift ;;
    --keep) keep=1; shift ;;
    --tutorial | --readme) page=$1; shift ;;
    --) shift; break ;;
    *) echo "unknown argument: $1" >&2; exit 2 ;;
  esac
done
commands=("$@")
case $page in
  --tutorial)  # indented lines that are commands; the clone is there already
    mapfile -t commands < <(git -C "$root" show HEAD:docs/start/tutorial.md |
      sed -n 's/^    \(\.\/roofgen .*\|cmake .*\)$/\1/p') ;;
  --readme)  # indented lines, and what is between backticks in tables
    mapfile -t commands < <(git -C "$root" show HEAD:README.md | sed 's/^    \(\$ \)\?\(\.\/roofgen .*\)/`\2`/' |
      grep -o '`\(mpirun [^`]*\)\?\./roofgen [^`]*`' |
      tr -d '`' | grep -v '\.\.\.\|\[[A-Z-]\| test$\| run$\|FILE\|^mpirun' |
      sed 's/^\.\/roofgen \(check\|lint\) .*/& || [[ $? == 1 ]]/') ;;
esac
[[ ! $page || ${#commands[@]} -ge 6 ]] || { echo "$page: ${#commands[@]} commands were found" >&2; exit 1; }
if [[ ${#commands[@]} == 0 ]]; then
  commands=('./roofgen tune attention --L 2048 --d 64' './roofgen test')
  for command in "${commands[@]}"; do
    git -C "$root" show HEAD:README.md | grep -qF "$command" || { echo "the README does not say: $command" >&2; exit 1; }
  done
fi

[[ $(id -u) == 0 ]] || { echo "this needs root: chroot, mounts, debootstrap" >&2; exit 77; }
command -v debootstrap >/dev/null || { echo "this needs debootstrap" >&2; exit 77; }
if [[ -z $mirror ]]; then
  mirror=$(sed -n -e 's/^URIs: *\([^ ]*\).*/\1/p' -e 's/^deb  *\(\[[^]]*\] *\)\?\([^ ]*\) .*/\2/p' \
    /etc/apt/sources.list.d/*.sources /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | head -n 1) || true
fi

mkdir -p "$cache"
bare=$cache/$suite-minbase.tar.gz
tree=$(mktemp -d "$cache/tree.XXXXXX")
cleanup() {
  if [[ $keep ]]; then echo "== kept: $tree"; else rm -rf --one-file-system "$tree"; fi
}
trap cleanup EXIT
chmod 755 "$tree"

if [[ -e $bare ]]; then
  tar -xzf "$bare" -C "$tree" --numeric-owner
else
  echo "== making a bare $suite"
  script=() # an Ubuntu newer than debootstrap is made like every other
  [[ -e /usr/share/debootstrap/scripts/$suite ]] || script=(/usr/share/debootstrap/scripts/gutsy)
  debootstrap --variant=minbase --components="$components" "$suite" "$tree" "$mirror" ${script[@]+"${script[@]}"} \
    >"$cache/debootstrap.log" 2>&1 ||
    { tail -n 20 "$cache/debootstrap.log" >&2; exit 1; }
  tar -czf "$bare.partial" -C "$tree" --one-file-system --numeric-owner .
  mv "$bare.partial" "$bare"
fi

cp -L /etc/resolv.conf "$tree/etc/resolv.conf"
for file in /etc/apt/apt.conf.d/*; do
  if grep -qE '^ *Acquire::' "$file"; then cp "$file" "$tree/etc/apt/apt.conf.d/"; fi
done
cp -r /etc/apt/auth.conf.d "$tree/etc/apt/" 2>/dev/null || true
for file in /etc/pip.conf "$HOME/.config/pip/pip.conf"; do
  if [[ -e $file ]]; then cp "$file" "$tree/etc/pip.conf"; fi
done
if [[ -e /etc/ssl/certs/ca-certificates.crt ]]; then cp -L /etc/ssl/certs/ca-certificates.crt "$tree/etc/host-ca.crt"; fi

mkdir -p "$tree/srv/roofgen"
git -C "$root" archive HEAD | tar -x -C "$tree/srv/roofgen"
echo "== roofgen $(git -C "$root" rev-parse --short HEAD)"

# A process namespace too: stopping this script stops its child processes.
unshare --mount --propagation private --pid --fork --kill-child -- bash "$here/run.sh" --inside "$tree" "$user" "${commands[@]}"
