// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestRequirements keeps docs/requirements.md true: every row is there once, and the last column agrees with what the
// tests say of themselves.
func TestRequirements(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), RequirementsFile))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := ParseRows(text)
	if err != nil {
		t.Fatal(err)
	}
	tree := moduleTree(t)
	report(t, RowsComplete(rows))
	report(t, RowsTrue(rows, Tests(tree)))
	report(t, MentionsKnown(Mentions(tree)))
}

// list makes a full list of requirements, with some last columns given by ID.
func list(shown map[string]string) string {
	var b strings.Builder
	for _, id := range allIDs() {
		last := shown[id]
		if last == "" {
			last = notYet
		}
		b.WriteString("| " + id + " | what it means | " + last + " |\n")
	}
	return b.String()
}

func parse(t *testing.T, text string) []Row {
	t.Helper()
	rows, err := ParseRows([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestRowsCompleteCatches shows lists that lack a row, have one twice, or have one too many.
func TestRowsCompleteCatches(t *testing.T) {
	full := list(nil)
	row := func(id string) string { return "| " + id + " | what it means | not yet |\n" }
	for _, c := range []struct{ name, text, want string }{
		{"full", full, ""},
		{"one missing", strings.Replace(full, row("R-DR-07"), "", 1), "R-DR-07 is missing"},
		{"one twice", full + row("R-CS-13"), "R-CS-13 is listed already, on line 13"},
		{"one too many", full + row("R-CS-94"), "R-CS-94 is no requirement"},
		{"a lesson missing", strings.Replace(full, row("L-CS-05"), "", 1), "L-CS-05 is missing"},
		{"a lesson too many", full + row("L-CS-43"), "L-CS-43 is no requirement"},
		{"lessons of another area", full + row("L-DR-01"), "L-DR-01 is no requirement"},
		{"no such area", full + row("R-XX-01"), "R-XX-01 is no requirement"},
	} {
		t.Run(c.name, func(t *testing.T) { wantOnly(t, RowsComplete(parse(t, c.text)), c.want) })
	}
	if got, want := len(parse(t, full)), 93+42+11+20+34+30+21+10; got != want {
		t.Errorf("got %d rows, want %d", got, want)
	}
}

// TestParseRowsRejects shows rows that cannot be read; none of them is passed over.
func TestParseRowsRejects(t *testing.T) {
	for _, row := range []string{
		"| R-CS-13 | no last column |",
		"| R-CS-13 | | not yet |",
		"| R-CS-13 | meaning | soon |",
		"| R-CS-13 | meaning | lkg.TestX |",
		"| R-CS-13 | meaning | `lkg.helper` |",
		"| R-CS-13 | meaning | `lkg.TestX` `lkg.TestY` |",
		"| R-CS-13 | meaning | not yet | more |",
	} {
		if rows, err := ParseRows([]byte("\n" + row)); err == nil || !strings.Contains(err.Error(), RequirementsFile+":2:") {
			t.Errorf("%s: got %v and error %v, want an error with its line", row, rows, err)
		}
	}
}

const claimed = `package lkg

// TestDoc shows R-CS-13.
func TestDoc(t *testing.T) {}

func TestR_CS_14_Name(t *testing.T) {}

func TestBody(t *testing.T) {
	t.Run("R-CS-15 by name", nil)
}

func TestSilent(t *testing.T) {}
`

// TestRowsTrueCatches shows last columns that promise what no test keeps, or hide what one shows.
func TestRowsTrueCatches(t *testing.T) {
	tests := Tests(tree(t, "lkg/sub/a_test.go", claimed))
	good := map[string]string{"R-CS-13": "`lkg/sub.TestDoc`", "R-CS-14": "`lkg/sub.TestR_CS_14_Name`"}
	with := func(id, last string) map[string]string {
		m := map[string]string{id: last}
		for k, v := range good {
			if _, ok := m[k]; !ok {
				m[k] = v
			}
		}
		return m
	}
	for _, c := range []struct {
		name  string
		shown map[string]string
		want  string
	}{
		{"true", good, ""},
		{"a body may stay unnamed", with("R-CS-15", notYet), ""},
		{"a body is enough", with("R-CS-15", "`lkg/sub.TestBody`"), ""},
		{"no such test", with("R-CS-16", "`lkg/sub.TestGone`"), `R-CS-16 names the test "lkg/sub.TestGone", which does not exist`},
		{"no such package", with("R-CS-13", "`lkg.TestDoc`"), `"lkg.TestDoc", which does not exist`},
		{"silent test", with("R-CS-16", "`lkg/sub.TestSilent`"), "does not mention it"},
		{"another row's test", with("R-CS-16", "`lkg/sub.TestDoc`"), "does not mention it"},
		{"one of two", with("R-CS-13", "`lkg/sub.TestDoc`, `lkg/sub.TestSilent`"), "does not mention it"},
		{"claimed by a comment", with("R-CS-13", notYet), `R-CS-13 says "not yet", but lkg/sub.TestDoc claims it`},
		{"a lesson claimed by nothing", with("L-CS-13", "`lkg/sub.TestDoc`"), `L-CS-13 names the test "lkg/sub.TestDoc", which does not mention it`},
		{"claimed by a name", with("R-CS-14", notYet), `but lkg/sub.TestR_CS_14_Name claims it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantOnly(t, RowsTrue(parse(t, list(c.shown)), tests), c.want)
		})
	}
}

// TestTestsSpeakThroughData shows that a test speaks of the requirements that the golden files name which it reads.
func TestTestsSpeakThroughData(t *testing.T) {
	const code = "package lkg\n\nfunc TestGolden(t *testing.T) { run(t, \"testdata/texts/*.txt\") }\n"
	tests := Tests(tree(t, "lkg/a_test.go", code, "lkg/testdata/texts/a.txt", "# R-CS-76\n", "lkg/testdata/other.txt", "# R-CS-77\n",
		"drain/testdata/texts/a.txt", "# R-CS-78\n"))
	want := []Test{{Name: "lkg.TestGolden", Body: []string{"R-CS-76"}}}
	if !reflect.DeepEqual(tests, want) {
		t.Errorf("got %v, want %v", tests, want)
	}
}

// TestFillRows shows that the generator writes what the tests say, drops what they no longer say, and that the result
// passes.
func TestFillRows(t *testing.T) {
	tests := Tests(tree(t, "lkg/a_test.go", claimed, "drain/a_test.go", "package drain\n\n// R-CS-12..14\nfunc TestX() {}\n"))
	stale := "# Title\n\n" + list(map[string]string{"R-CS-01": "`lkg.TestGone`"}) + "\nend\n"
	filled, err := FillRows([]byte(stale), tests)
	if err != nil {
		t.Fatal(err)
	}
	rows := parse(t, string(filled))
	report(t, RowsTrue(rows, tests))
	got := map[string][]string{}
	for _, r := range rows {
		if len(r.Tests) > 0 {
			got[r.ID] = r.Tests
		}
	}
	want := map[string][]string{
		"R-CS-12": {"drain.TestX"},
		"R-CS-13": {"drain.TestX", "lkg.TestDoc"},
		"R-CS-14": {"drain.TestX", "lkg.TestR_CS_14_Name"},
		"R-CS-15": {"lkg.TestBody"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !bytes.HasPrefix(filled, []byte("# Title\n\n| R-CS-01 |")) || !bytes.HasSuffix(filled, []byte("|\n\nend\n")) {
		t.Errorf("the text around the rows changed: %.40q … %q", filled, filled[len(filled)-20:])
	}
	again, err := FillRows(filled, tests)
	if err != nil || !bytes.Equal(again, filled) {
		t.Errorf("filling twice gives another text (error %v)", err)
	}
}

// TestIDs shows the forms in which a text may name requirements.
func TestIDs(t *testing.T) {
	for text, want := range map[string]string{
		"R-CS-13":                   "R-CS-13",
		"TestR_CS_13_Checkpoint":    "R-CS-13",
		"R-CS-62..64 and R-CS-02":   "R-CS-02 R-CS-62 R-CS-63 R-CS-64",
		"R-CS-80…81, R-CS-80":       "R-CS-80 R-CS-81",
		"R-CS-62 to R-CS-64, 70":    "R-CS-62 R-CS-63 R-CS-64",
		"R-CS-08..R-CS-10":          "R-CS-08 R-CS-09 R-CS-10",
		"R-ID-04/16/17":             "R-ID-04 R-ID-16 R-ID-17",
		"R-RO-01/03..05":            "R-RO-01 R-RO-03 R-RO-04 R-RO-05",
		"ends a sentence: R-AU-01.": "R-AU-01",
		"L-CS-04, R-CS-04, S-CS-11": "L-CS-04 R-CS-04 S-CS-11",
		"C-01, C-33: UTC-05 C1":     "L-CS-01 L-CS-33",
		"L-CS-08..L-CS-10/12":       "L-CS-08 L-CS-09 L-CS-10 L-CS-12",
		"R-XX-01, R-CS-1, CS-13":    "",
	} {
		if got := strings.Join(ids(text), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestMentionsKnownCatches shows that a test that speaks of a requirement that does not exist is found, wherever it
// does.
func TestMentionsKnownCatches(t *testing.T) {
	tree := tree(t, "lkg/a_test.go", "package lkg\n\n// Cases of R-CS-93 and R-CS-94.\nvar cases []int\n", "lkg/a.go", "package lkg // R-CS-95\n")
	wantOnly(t, MentionsKnown(Mentions(tree)), "lkg/a_test.go:6: mentions R-CS-94")
}
