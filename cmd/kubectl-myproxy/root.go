package main

import (
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// run executes the command line and returns the exit code.
func run(args []string, streams genericiooptions.IOStreams, clock clock.PassiveClock) int {
	// client-go logs what it also returns, a line for each attempt, and the server's warnings about old API versions.
	// Neither helps who asks for an owner; kubectl's -v shows them.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))

	root := newRootCommand(streams, clock)
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		root.PrintErrln("error:", oneLine(err))
		return 1
	}
	return 0
}

func newRootCommand(streams genericiooptions.IOStreams, clock clock.PassiveClock) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true).WithWarningPrinter(streams)
	root := &cobra.Command{
		Use:           "kubectl-myproxy",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl myproxy"},
		Short:         "Look at proxies, and at who owns what",
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	flags.AddFlags(root.PersistentFlags())
	root.AddCommand(newOwnersCommand(flags, streams, clock))
	return root
}

// oneLine keeps an error on one line: cobra's suggestions and some servers' messages have more.
func oneLine(err error) string {
	return printable(strings.Join(strings.Fields(err.Error()), " "))
}
