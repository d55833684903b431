package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"myproxy.dev/operator/internal/managedfields"
)

// printOwners writes the fields as an indented tree in a table, with a line for each owner of a field.
func printOwners(out io.Writer, fields []managedfields.Field, now time.Time) error {
	var rows, table strings.Builder
	rows.WriteString("FIELD\tMANAGER\tOPERATION\tSUBRESOURCE\tAGE\n")
	writeFields(&rows, "", fields, now)
	writer := printers.GetNewTabWriter(&table)
	if _, err := io.WriteString(writer, rows.String()); err != nil {
		return err
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		// A column ends at a line that has no cell in it. So every line has all cells, and the empty ones pad its end.
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func writeFields(rows *strings.Builder, indent string, fields []managedfields.Field, now time.Time) {
	for _, field := range fields {
		name := indent + cmp.Or(printable(field.Name), `""`)
		if len(field.Owners) == 0 {
			fmt.Fprintf(rows, "%s\t\t\t\t\n", name)
		}
		for _, owner := range field.Owners {
			fmt.Fprintf(rows, "%s\t%s\t%s\t%s\t%s\n",
				name, printable(owner.Manager), owner.Operation, printable(owner.Subresource), age(owner.Time, now))
			name = indent + "+"
		}
		writeFields(rows, indent+"  ", field.Fields, now)
	}
}

// age is as kubectl get shows it.
func age(since, now time.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(since))
}

// printable returns a text as it is, or quoted where a terminal would do something else than show it: whoever may write
// an object can put control characters into its managedFields, and a server into its messages.
func printable(text string) string {
	hidden := func(r rune) bool { return !strconv.IsPrint(r) }
	if !utf8.ValidString(text) || strings.ContainsFunc(text, hidden) {
		return strconv.Quote(text)
	}
	return text
}
