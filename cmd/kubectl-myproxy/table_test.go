package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"myproxy.dev/operator/internal/managedfields"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func TestOwnersAreATreeWithALineForEachOwner(t *testing.T) {
	input, err := os.ReadFile(filepath.Join("testdata", "myproxy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(input, &object.Object); err != nil {
		t.Fatal(err)
	}
	wantGolden(t, "owners.txt", printed(t, object))
}

func TestOutputHasNoControlCharacters(t *testing.T) {
	object := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{
		Manager: "red\x1b[31m\u202e", Operation: "Update", Subresource: "\t\n\xff", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:bell\u0007":{},"f:tab\there":{},"f:two\nlines":{},"k:{\"\\u001b\":\"\\u001b\"}":{},"f:":{}}`),
	}}}
	got := printed(t, object)
	for _, r := range got {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%q is in the output:\n%q", r, got)
		}
	}
	if lines := strings.Count(got, "\n"); lines != 6 {
		t.Errorf("%d lines, want a header and one for each of five fields:\n%s", lines, got)
	}
}

func printed(t *testing.T, object metav1.Object) string {
	t.Helper()
	fields, err := managedfields.Tree(object)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printOwners(&out, fields, noon); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func wantGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update rewrites it), got\n%s\nwant\n%s", path, got, want)
	}
}
