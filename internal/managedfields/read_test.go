package managedfields

import (
	"slices"
	"strings"
	"testing"

	fieldpath4 "sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	fieldpath6 "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// verdict is what the two versions say of a document.
type verdict string

const (
	alike   verdict = "both read it, and the same"
	refused verdict = "both refuse it"
	// v4Only documents are the known difference: v4 does not look behind the end of a JSON value, be it the document or
	// a key in it. The reader of this package sides with v6, for that is what the API server reads.
	v4Only verdict = "v4 accepts trailing garbage, v6 does not"
	// sloppy documents are no JSON, yet both parsers read them: a raw control character passes once an escape stands
	// before it in the string. No encoder writes that; the reader of this package refuses it.
	sloppy verdict = "both read it, and the same, though it is no JSON"
)

// fieldsV1Documents is the table that v4 and v6 are compared by, and the fuzz target's seeds.
var fieldsV1Documents = map[string]struct {
	document string
	verdict  verdict
	paths    string // of the documents that can be read, separated by spaces, in v4's order
}{
	"empty":                    {`{}`, alike, ``},
	"null":                     {`null`, alike, ``},
	"white space around":       {" \n{\"f:a\":{}}\t\r\n ", alike, `.a`},
	"one field":                {`{"f:spec":{}}`, alike, `.spec`},
	"a null leaf":              {`{"f:spec":null}`, alike, `.spec`},
	"nested":                   {`{"f:spec":{"f:template":{"f:spec":{"f:hostNetwork":{}}}}}`, alike, `.spec.template.spec.hostNetwork`},
	"membership":               {`{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`, alike, `.metadata.labels .metadata.labels.app`},
	"membership alone":         {`{"f:metadata":{"f:labels":{".":{}}}}`, alike, `.metadata.labels`},
	"membership with a value":  {`{"f:a":{".":{"f:ignored":["k:ignored"]}}}`, alike, `.a`},
	"membership of the object": {`{".":{},"f:a":{}}`, alike, `.a`},
	"the object alone":         {`{".":{}}`, alike, ``},
	"dots and slashes":         {`{"f:app.kubernetes.io/name":{},"f:.dockerconfigjson":{}}`, alike, `..dockerconfigjson .app.kubernetes.io/name`},
	"a field without a name":   {`{"f:":{}}`, alike, `.`},
	"not ASCII":                {`{"f:größe-🚀":{}}`, alike, `.größe-🚀`},
	"escapes":                  {`{"f:\u0061\ud83d\ude80":{}}`, alike, `.a🚀`},
	"one key":                  {`{"k:{\"name\":\"nginx\"}":{".":{},"f:image":{}}}`, alike, `[name="nginx"] [name="nginx"].image`},
	"several keys":             {`{"k:{\"port\":443,\"protocol\":\"TCP\"}":{}}`, alike, `[port=443,protocol="TCP"]`},
	"keys in another order":    {`{"k:{\"protocol\":\"TCP\",\"port\":443}":{}}`, alike, `[port=443,protocol="TCP"]`},
	"a null key":               {`{"k:{\"name\":null}":{}}`, alike, `[name=null]`},
	"a key of a map":           {`{"k:{\"a\":{\"b\":[1,true]}}":{}}`, alike, `[a=b=[1,true]]`},
	"no keys":                  {`{"k:{}":{}}`, alike, `[]`},
	"null keys":                {`{"k:null":{}}`, alike, `[]`},
	"a quote in a key":         {`{"k:{\"name\":\"a\\\"b\"}":{}}`, alike, `[name="a\"b"]`},
	"white space in a key":     {`{"k: {\"name\" : \"a\"} ":{}}`, alike, `[name="a"]`},
	"strings of a set":         {`{"v:\"b\"":{},"v:\"a\"":{}}`, alike, `[="a"] [="b"]`},
	"numbers of a set":         {`{"v:1":{},"v:2.5":{},"v:-3":{},"v:1e3":{}}`, alike, `[=-3] [=1] [=2.5] [=1000]`},
	"a number beyond 2^53":     {`{"v:9007199254740993":{}}`, alike, `[=9.007199254740992e+15]`},
	"booleans and null":        {`{"v:true":{},"v:false":{},"v:null":{}}`, alike, `[=false] [=true] [=null]`},
	"a map of a set":           {`{"v:{\"a\":1}":{}}`, alike, `[=a=1]`},
	"indexes":                  {`{"i:10":{},"i:2":{"f:a":{}}}`, alike, `[10] [2].a`},
	"a negative index":         {`{"i:-1":{}}`, alike, `[-1]`},
	"a signed index":           {`{"i:+1":{}}`, alike, `[1]`},
	"half a surrogate pair":    {`{"f:\ud800":{}}`, alike, ".\ufffd"},
	"every kind":               {`{"i:0":{},"v:1":{},"k:{\"a\":1}":{},"f:a":{}}`, alike, `.a [a=1] [=1] [0]`},
	"not sorted":               {`{"f:b":{"f:z":{},"f:y":{}},"f:a":{}}`, alike, `.a .b.y .b.z`},
	"a member twice":           {`{"f:a":{},"f:a":{}}`, alike, `.a`},
	"a parent twice":           {`{"f:a":{"f:x":{}},"f:a":{"f:y":{}}}`, alike, `.a.y`},
	"a kind of the future":     {`{"f:a":{},"x:b":{"f:c":{}}}`, alike, `.a`},
	"only of the future":       {`{"f:a":{"x:b":[1]}}`, alike, `.a`},

	"nothing":                    {``, refused, ``},
	"only white space":           {` `, refused, ``},
	"a list":                     {`[]`, refused, ``},
	"a string":                   {`"f:a"`, refused, ``},
	"a number":                   {`1`, refused, ``},
	"a word":                     {`fields`, refused, ``},
	"half a null":                {`nul`, refused, ``},
	"cut after the brace":        {`{`, refused, ``},
	"cut in a key":               {`{"f:a`, refused, ``},
	"cut after a key":            {`{"f:a"`, refused, ``},
	"cut after the colon":        {`{"f:a":`, refused, ``},
	"cut in a child":             {`{"f:a":{`, refused, ``},
	"cut after a child":          {`{"f:a":{}`, refused, ``},
	"a comma too many":           {`{"f:a":{},}`, refused, ``},
	"a comma too few":            {`{"f:a":{}"f:b":{}}`, refused, ``},
	"a key without quotes":       {`{f:a:{}}`, refused, ``},
	"a leaf that is a string":    {`{"f:a":""}`, refused, ``},
	"a leaf that is a number":    {`{"f:a":1}`, refused, ``},
	"a leaf that is a list":      {`{"f:a":[]}`, refused, ``},
	"a leaf that is true":        {`{"f:a":true}`, refused, ``},
	"an empty name":              {`{"":{}}`, refused, ``},
	"a kind without a colon":     {`{"f":{}}`, refused, ``},
	"a name without a kind":      {`{"spec":{}}`, refused, ``},
	"an index that is no number": {`{"i:a":{}}`, refused, ``},
	"an index without a number":  {`{"i:":{}}`, refused, ``},
	"an index and a space":       {`{"i:0 ":{}}`, refused, ``},
	"a value that is no JSON":    {`{"v:a":{}}`, refused, ``},
	"an empty value":             {`{"v:":{}}`, refused, ``},
	"half a value":               {`{"v:{\"a\":":{}}`, refused, ``},
	"a key that is no object":    {`{"k:\"name\"":{}}`, refused, ``},
	"an empty key":               {`{"k:":{}}`, refused, ``},
	"half a key":                 {`{"k:{\"name\":\"a\"":{}}`, refused, ``},
	"a bad escape":               {`{"f:\x":{}}`, refused, ``},
	"a leading zero":             {`{"v:01":{}}`, refused, ``},
	"a number beyond float64":    {`{"v:1e400":{}}`, refused, ``},
	"no JSON in what is skipped": {`{".":nope}`, refused, ``},
	"a raw control character":    {"{\"f:a\x01\":{}}", refused, ``},

	"garbage after the object":      {`{"f:a":{}} garbage`, v4Only, `.a`},
	"a second object":               {`{"f:a":{}}{"f:b":{}}`, v4Only, `.a`},
	"a brace too many":              {`{"f:a":{}}}`, v4Only, `.a`},
	"a zero byte after the object":  {"{\"f:a\":{}}\x00", v4Only, `.a`},
	"garbage after null":            {`null{"f:a":{}}`, v4Only, ``},
	"garbage after a value":         {`{"v:\"a\" garbage":{}}`, v4Only, `[="a"]`},
	"a number with underscores":     {`{"v:1_000":{}}`, v4Only, `[=1]`},
	"a second value":                {`{"v:1 2":{}}`, v4Only, `[=1]`},
	"garbage after a key":           {`{"k:{\"name\":\"a\"} garbage":{}}`, v4Only, `[name="a"]`},
	"a second key":                  {`{"k:{\"name\":\"a\"}{\"name\":\"b\"}":{}}`, v4Only, `[name="a"]`},
	"garbage in the first of two":   {`{"f:a":{"v:1 2":{}},"f:a":{}}`, v4Only, `.a .a[=1]`},
	"garbage after a key, deep":     {`{"f:a":{"f:b":{"k:{\"c\":1}]":{}}}}`, v4Only, `.a.b[c=1]`},
	"garbage deep below a new kind": {`{"x:b":{"v:1 2":{}}}`, alike, ``},

	"a raw control character after an escape": {"{\"f:\\t\x1d\":{}}", sloppy, ".\t\x1d"},
}

func TestV4AndV6ReadFieldsV1Alike(t *testing.T) {
	for name, tc := range fieldsV1Documents {
		t.Run(name, func(t *testing.T) {
			set4, err4 := readV4(tc.document)
			set6, err6 := readV6(tc.document)
			wantRead(t, "v4", err4, tc.verdict != refused)
			wantRead(t, "v6", err6, tc.verdict == alike || tc.verdict == sloppy)
			if err4 == nil && paths4(set4) != tc.paths {
				t.Errorf("v4 reads %q, want %q", paths4(set4), tc.paths)
			}
			if err6 == nil {
				wantSame(t, set4, set6)
			}

			own, err := readSet([]byte(tc.document))
			wantRead(t, "this package", err, tc.verdict == alike)
			if err == nil && !own.Equals(set4) {
				t.Errorf("this package reads\n%s\nv4 reads\n%s", own, set4)
			}
		})
	}
}

func readV4(document string) (*fieldpath4.Set, error) {
	set := fieldpath4.NewSet()
	return set, set.FromJSON(strings.NewReader(document))
}

func readV6(document string) (*fieldpath6.Set, error) {
	set := fieldpath6.NewSet()
	return set, set.FromJSON(strings.NewReader(document))
}

func paths4(set *fieldpath4.Set) string {
	var paths []string
	set.Iterate(func(path fieldpath4.Path) { paths = append(paths, path.String()) })
	return strings.Join(paths, " ")
}

func paths6(set *fieldpath6.Set) string {
	var paths []string
	set.Iterate(func(path fieldpath6.Path) { paths = append(paths, path.String()) })
	return strings.Join(paths, " ")
}

func wantRead(t *testing.T, who string, err error, want bool) {
	t.Helper()
	if (err == nil) != want {
		t.Errorf("%s: read is %t (%v), want %t", who, err == nil, err, want)
	}
}

// wantSame compares the paths, and what each version would write: the bytes on the wire.
func wantSame(t *testing.T, set4 *fieldpath4.Set, set6 *fieldpath6.Set) {
	t.Helper()
	if got4, got6 := paths4(set4), paths6(set6); got4 != got6 {
		t.Errorf("v4 reads %q, v6 reads %q", got4, got6)
	}
	json4, err4 := set4.ToJSON()
	json6, err6 := set6.ToJSON()
	if err4 != nil || err6 != nil || !slices.Equal(json4, json6) {
		t.Errorf("v4 writes %s (%v), v6 writes %s (%v)", json4, err4, json6, err6)
	}
}
