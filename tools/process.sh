# shellcheck shell=bash
# Sourced by the scripts beside it: processes that outlive a script, by their pid files.

# ours PIDFILE: whether the process that the file names runs a program of this checkout. The number alone is no proof: after
# a reboot it may be a stranger's.
ours() {
  local pid
  pid=$(cat "$1" 2>/dev/null) && [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") == *"$PWD/bin/"* ]]
}

# stop PIDFILE [SIGNAL]: ends that process if it is ours, and waits until it is gone.
stop() {
  local deadline=$((SECONDS + 15))
  ours "$1" && kill -"${2:-TERM}" "$(<"$1")"
  while ours "$1"; do
    ((SECONDS < deadline)) || kill -KILL "$(<"$1")"
    sleep 0.1
  done
  rm -f "$1"
}
