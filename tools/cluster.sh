#!/usr/bin/env bash
# Usage: cluster.sh up|down
#
# The embedded cluster: a real etcd, API server, controller manager and scheduler as plain processes of this machine, with
# nodes whose kubelets kwok simulates. All that it writes is in bin/$CLUSTER (bin/cluster), its kubeconfig among it.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/process.sh

dir=$PWD/bin/${CLUSTER:-cluster}
name=myproxy-$(cksum <<<"$dir" | cut -d' ' -f1)
programs=$PWD/bin/k8s

# HOME: kwokctl and kubectl look there for a configuration, and leave caches. 9: no daemon may keep the lock.
kwokctl() { HOME=$dir KWOK_WORKDIR=$dir PATH=$programs:$PATH "$programs/kwokctl" --name "$name" "$@" >>"$dir/kwokctl.log" 2>&1 9<&-; }
kubectl() { HOME=$dir KUBECONFIG=$dir/kubeconfig "$programs/kubectl" "$@"; }

# Two that start at once, in whatever checkouts, would choose the same ports: so the lock is the machine's.
lock() { exec 9</tmp && flock 9; }

pidfiles() { find "$dir/clusters" -path '*/pids/*.pid' 2>/dev/null || true; }

alive() {
  local file
  [[ -f $dir/up ]] || return
  for file in $(pidfiles); do ours "$file" || return; done
  ready
}

ready() { kubectl get --raw /readyz --request-timeout 2s &>/dev/null; }

up() {
  if alive; then
    echo "cluster: up"
    return
  fi
  down # what is left of one that died, or whose start was cut short

  echo "cluster: starting"
  local start=$SECONDS
  mkdir -p "$dir"
  configuration >"$dir/kwok.yaml" # where kwokctl looks for it
  kwokctl create cluster --kubeconfig "$dir/kubeconfig" || true # not the exit code decides, but:
  until ready; do
    ((SECONDS - start < 60)) || failed
    sleep 0.2
  done
  kwokctl scale node --replicas 3 || failed
  kubectl wait node --all --for condition=Ready --timeout 30s >/dev/null || failed
  kubectl wait serviceaccount/default --for create --timeout 30s >/dev/null || failed # no pod is admitted before it
  touch "$dir/up"
  echo "cluster: up after $((SECONDS - start)) s"
}

# Everything listens on the loopback address only: the default is an open etcd on every address.
configuration() {
  cat <<EOF
apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokctlConfiguration
options:
  runtime: binary
  bindAddress: 127.0.0.1
  kubeVersion: $("$programs/kube-apiserver" --version | cut -d ' ' -f 2)
  etcdBinary: $programs/etcd
  kubeApiserverBinary: $programs/kube-apiserver
  kubeControllerManagerBinary: $programs/kube-controller-manager
  kubeSchedulerBinary: $programs/kube-scheduler
  kubectlBinary: $programs/kubectl
  kwokControllerBinary: $programs/kwok
EOF
}

failed() {
  echo "cluster: did not start; the ends of its logs:" >&2
  tail -n 20 "$dir/kwokctl.log" "$dir/clusters/$name"/logs/*.log >&2
  exit 1
}

# Not by kwokctl, which kills whatever process has the number in a pid file.
down() {
  local file
  stop "$dir/manager.pid" # the demo's operator
  for file in $(pidfiles); do stop "$file" KILL; done
  [[ ! -f $dir/kwok.yaml ]] || rm -rf "$dir"
}

case ${1:-} in
  up)
    tools/programs.sh etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok kwokctl
    lock
    up
    ;;
  down)
    lock
    down
    echo "cluster: down"
    ;;
  *)
    sed -n '2s/^# //p' "$0" >&2
    exit 2
    ;;
esac
