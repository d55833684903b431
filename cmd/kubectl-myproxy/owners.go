package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/utils/clock"

	"myproxy.dev/operator/internal/managedfields"
)

// defaultType is the type of an object that is given by its name alone. It carries the group, so that a type of the
// same name elsewhere can't be meant.
const defaultType = "myproxies.gateway.myproxy.dev"

var errOneObject = errors.New("name one object, as [TYPE/]NAME or TYPE NAME")

// ownersOptions is what `owners` needs beside its arguments.
type ownersOptions struct {
	genericiooptions.IOStreams
	cluster *genericclioptions.ConfigFlags
	clock   clock.PassiveClock
}

func newOwnersCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams, clock clock.PassiveClock) *cobra.Command {
	options := ownersOptions{IOStreams: streams, cluster: flags, clock: clock}
	return &cobra.Command{
		Use:   "owners ([TYPE/]NAME | TYPE NAME)",
		Short: "Show who owns each field of an object",
		Long: `Show the fields of an object as a tree, each with the managers that own it, how they wrote it (Apply is server-side
apply, Update everything else), to which subresource, and how long ago they last changed any of their fields.

A field with several owners has a line for each; those after the first begin with "+". A field without a manager on its
line is there only for what is below it. Fields that nobody owns, such as defaults of the server, are not shown. The age
is <unknown> where the server keeps no time: of a manager that only scaled, or that applied what was there already.

TYPE is that of a MyProxy where it is left out, and can be any that kubectl knows.`,
		Example: `  # The fields of a MyProxy: its spec is yours, its status is the operator's
  kubectl myproxy owners shop

  # Who scaled this Deployment?
  kubectl myproxy owners deployment/shop`,
		Args:              oneObject,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(_ *cobra.Command, args []string) error { return options.run(args) },
	}
}

func (o ownersOptions) run(args []string) error {
	object, err := o.fetch(args)
	if err != nil {
		return err
	}
	accessor, err := meta.Accessor(object.Object)
	if err != nil {
		return err
	}
	fields, err := managedfields.Tree(accessor)
	if err != nil {
		return fmt.Errorf("%s: %w", object.ObjectName(), err)
	}
	if len(fields) == 0 {
		_, err := fmt.Fprintf(o.Out, "%s has no managed fields: who wrote what is not known.\n", object.ObjectName())
		return err
	}
	return printOwners(o.Out, fields, o.clock.Now())
}

// fetch gets the object that the arguments name, by a single request beside discovery's.
func (o ownersOptions) fetch(args []string) (*resource.Info, error) {
	if len(args) == 1 && !strings.Contains(args[0], "/") {
		args = []string{defaultType, args[0]}
	}
	namespace, _, err := o.cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	objects, err := resource.NewBuilder(o.cluster).
		Unstructured(). // any type, and nothing of it dropped
		NamespaceParam(namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, args...).
		SingleResourceType().
		Do().Infos()
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, errOneObject
	}
	return objects[0], nil
}

func oneObject(_ *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return errOneObject
	}
	return nil
}
