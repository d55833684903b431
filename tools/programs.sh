#!/usr/bin/env bash
# Usage: programs.sh NAME...
#
# Sees to it that each program named is in bin/k8s, and tells what that takes. A program comes
#   1. from $KUBEBUILDER_ASSETS, where it is there: linked;
#   2. else from bin/k8s, where it is there already;
#   3. else from a release, where the network answers within five seconds: of setup-envtest, or of Kubernetes;
#   4. else from the Go modules in tools/ and tools/kubernetes/, built: ten minutes for all, once.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$PWD/bin/k8s
mkdir -p "$dir"
exec 9<"$dir" && flock 9 # two builds at once would each take twice as long, with the memory of both

# A program appears in bin/k8s whole or not at all: it is made here, then renamed.
tmp=$(mktemp -d "$dir/.tmp.XXXX")
trap 'rm -rf "$tmp"' EXIT

say() { echo "programs: $*" >&2; }

linked() {
  local program=${KUBEBUILDER_ASSETS:-}/$1
  [[ -n ${KUBEBUILDER_ASSETS:-} && -x $program && ! $program -ef $dir/$1 ]] && ln -sf "$(realpath "$program")" "$tmp/$1"
}

downloaded() {
  case $1 in
    etcd | kube-apiserver | kubectl)
      online https://raw.githubusercontent.com || return
      say "$1: from setup-envtest"
      local minor=${version%.*} assets
      assets=$(timeout 300 go -C tools run sigs.k8s.io/controller-runtime/tools/setup-envtest use "${minor#v}.x" --bin-dir "$PWD/bin/envtest" --print path) &&
        cp "$assets/$1" "$tmp/$1"
      ;;
    kube-controller-manager | kube-scheduler)
      online https://dl.k8s.io || return
      local url
      url=https://dl.k8s.io/$version/bin/$(go env GOOS)/$(go env GOARCH)/$1
      say "$1: from $url"
      curl -fsSL --max-time 300 -o "$tmp/$1" "$url" &&
        echo "$(curl -fsSL --max-time 300 "$url.sha256")  $tmp/$1" | sha256sum --check --quiet &&
        chmod +x "$tmp/$1"
      ;;
    *) false ;; # kwok and kwokctl build in a minute
  esac
}

online() { curl --silent --head --output /dev/null --max-time 5 "$1" 2>/dev/null; }

built() {
  local module=tools/kubernetes package=k8s.io/kubernetes/cmd/$1 stamp=k8s.io/component-base/version minor=${version#v*.}
  case $1 in
    etcd) package=go.etcd.io/etcd/server/v3 ;;
    kwok | kwokctl) module=tools package=sigs.k8s.io/kwok/cmd/$1 ;;
  esac
  say "$1: building it from $module (minutes, once)"
  rm -f "$tmp/$1" # go does not write over a download that failed half-way
  # Without its version, an API server calls itself v0.0.0-master, and clients and conversions go by that.
  CGO_ENABLED=0 go -C "$module" build -trimpath -o "$tmp/$1" \
    -ldflags "-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor%.*}" "$package"
}

for program; do
  if ! linked "$program"; then
    [[ -x $dir/$program ]] && continue
    version=$(go -C tools/kubernetes list -m -f '{{.Version}}' k8s.io/kubernetes)
    downloaded "$program" || built "$program"
  fi
  mv -f "$tmp/$program" "$dir/$program"
done
