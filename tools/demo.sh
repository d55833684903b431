#!/usr/bin/env bash
# Usage: demo.sh
#
# The tour: an embedded cluster, the CRD, the operator in the background, the samples, and what their status tells while pods
# go and come. Every command is shown as it runs. It leaves cluster and operator up, and can be taken again.
set -Eeuo pipefail
cd "$(dirname "$0")/.."
source tools/process.sh

dir=$PWD/bin/${CLUSTER:-cluster}
log=$dir/manager.log

bold='' plain=''
[[ ! -t 1 ]] || bold=$'\e[1m' plain=$'\e[0m'

title() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
show() { printf '\n%s$ %s%s\n' "$bold" "$1" "$plain" && eval "$1"; }

# follow COMMAND CHECK...: shows the command, and the status as a watch sees it until its last line passes the check.
follow() {
  local watch='kubectl get mpx shop --watch -o custom-columns=SERVING:.status.readyReplicas,PODS:.status.pod_names'
  printf '\n%s$ %s &%s\n' "$bold" "$watch" "$plain"
  $watch >"$dir/watch" &
  watcher=$!
  eventually grep -q shop- "$dir/watch"
  show "$1"
  eventually "${@:2}"
  kill "$watcher"
  cat "$dir/watch"
}

# serving N [GONE]: whether the last line of the watch tells of N pods that serve, and not of the one that is gone.
serving() {
  local line
  line=$(tail -n 1 "$dir/watch")
  [[ $line =~ ^$1\  && $line != *"${2:-nothing}"* ]]
}

# eventually COMMAND...: waits until it succeeds, for half a minute at most.
eventually() {
  local deadline=$((SECONDS + 30))
  until "$@"; do
    ((SECONDS < deadline)) || return
    sleep 0.1
  done
}

failed() {
  [[ -z ${watcher:-} ]] || kill "$watcher" 2>/dev/null || true
  echo "demo: this failed." >&2
  [[ ! -f $log ]] || { echo "The end of the operator's log, $log:" && tail -n 30 "$log"; } >&2
}
trap failed ERR

title "A cluster of plain processes, with simulated kubelets"
tools/cluster.sh up
export KUBECONFIG=$dir/kubeconfig PATH=$PWD/bin:$PWD/bin/k8s:$PATH
export HOME=$dir # where kubectl looks for a configuration, and leaves a cache

title "The API, and the operator in the background"
show "kubectl apply --server-side -f config/crd/bases"
kubectl wait crd/myproxies.gateway.myproxy.dev --for condition=Established --timeout 30s >/dev/null
stop "$dir/manager.pid" # that of an earlier tour is of an earlier build
setsid "$PWD/bin/manager" --metrics-bind-address=0 --health-probe-bind-address=0 </dev/null >"$log" 2>&1 &
echo $! >"$dir/manager.pid"

title "Two fleets"
# An earlier tour gave their replicas another owner by scaling: to apply them again would be a conflict.
kubectl delete -f config/samples --ignore-not-found --cascade=foreground --timeout=60s
show "kubectl apply --server-side -f config/samples"
show "kubectl wait mpx minimal shop --for condition=Ready --timeout 60s"
show "kubectl get mpx"
show "kubectl get pods -l gateway.myproxy.dev/name=shop"

title "The status: which pods there are, and whether they serve"
show "kubectl get mpx shop -o jsonpath='{.status.pod_names}{\"\\n\"}'"
show "kubectl get mpx shop -o jsonpath='{range .status.conditions[*]}{.type}={.status}  {.reason}: {.message}{\"\\n\"}{end}'"

title "Who owns which field"
show "kubectl myproxy owners shop"

title "A pod goes, and the status follows: each line is one change of the object"
pod=$(kubectl get mpx shop -o jsonpath='{.status.pod_names[0]}')
follow "kubectl delete pod $pod" serving 3 "$pod"

title "Five instead of three"
follow "kubectl scale mpx shop --replicas=5" serving 5
show "kubectl get mpx shop -o wide"

title "Look around"
cat <<EOF

export KUBECONFIG=$KUBECONFIG
export PATH=$PWD/bin:$PWD/bin/k8s:\$PATH
kubectl get mpx --watch
kubectl explain mpx.status
tail -f $log

Remove it, operator and all, with \`make cluster-down\`.
EOF
