// Command kubectl-myproxy is a plugin of kubectl, which runs it as `kubectl myproxy`: it shows proxies, and who owns
// which field of an object. It exits with 1 after an error, which is one line on standard error.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(run(os.Args[1:], streams, clock.RealClock{}))
}
