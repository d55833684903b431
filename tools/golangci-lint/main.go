// Command golangci-lint is golangci-lint with kube-api-linter linked in, as `golangci-lint custom` would build it. That
// command clones golangci-lint from GitHub; this needs the Go module proxy only.
package main

import (
	"fmt"
	"os"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"
	_ "sigs.k8s.io/kube-api-linter" // registers itself as the linter `kubeapilinter`
)

func main() {
	if err := commands.Execute(commands.BuildInfo{Version: "kube-api-linter"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitcodes.Failure)
	}
}
