// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"strings"
	"testing"
)

const embeddingExample = `//go:build linux

package lkg_test

import "fmt"

// A config is a text.
type config struct {
	text string
}

func (c config) String() string { return c.text }

// A text is printed.
func Example() {
	if true {
		fmt.Println(config{"a"})
	}
	// Output: a
}

func ExampleSilent() {
	fmt.Println("compiled, and never run")
}
`

// TestEmbeddingPagesCatch shows pages with code that stands in a file, and pages with code that does not, or not as it is there.
func TestEmbeddingPagesCatch(t *testing.T) {
	const (
		link = "The whole, of [its file](../../lkg/example_test.go):\n\n"
		body = "if true {\n\tfmt.Println(config{\"a\"})\n}\n// Output: a\n"
		typ  = "type config struct {\n\ttext string\n}\n"
	)
	block := func(before, code string) string { return before + "```go\n" + code + "```\n" }
	for _, c := range []struct{ name, page, want string }{
		{"a body", block(link, body), ""},
		{"a body after a title", block("# lkg\n\n"+link, body) + "\nEnd.\n", ""},
		{"a declaration", block(link, typ), ""},
		{"a declaration with its comment", block(link, "// A config is a text.\n"+typ), ""},
		{"two in a row", block(link, typ+"\nfunc (c config) String() string { return c.text }\n"), ""},
		{"the file", block(link, embeddingExample[strings.Index(embeddingExample, "package"):]), ""},
		{"another language", block(link, typ) + "```sh\nmake\n```\n", ""},

		{"no link", block("# lkg\n\n", body), "lkg.md:3: Go code without a link to its file"},
		{"a link further above", block(link+"Some text.\n\n", body), "without a link"},
		{"a link to a page", block("[doc](../lkg.md)\n", body), "without a link"},
		{"a file that is not there", block("[its file](../../lkg/gone_test.go)\n", body), "Go code of lkg/gone_test.go, which is not there"},
		{"another body", block(link, strings.Replace(body, `"a"`, `"b"`, 1)), "Go code that is not in lkg/example_test.go"},
		{"a part of a body", block(link, strings.TrimSuffix(body, "// Output: a\n")), "Go code that is not in"},
		{"an Example that does not run", block(link, "fmt.Println(\"compiled, and never run\")\n"), "Go code that is not in"},
		{"a part of a declaration", block(link, "type config struct {\n"), "Go code that is not in"},
		{"declarations that are not in a row", block(link, typ+"\n// A text is printed.\nfunc Example() {\n"), "Go code that is not in"},
		{"a fence that is not closed", link + "```go\nx := 1\n", "Go code that is not in"},
		{"another spelling of the language", block(link, "x := 1\n")[:len(link)] + "```Go\nx := 1\n```\n", "Go code that is not in"},
		{"no code", "# lkg\n", "docs/embedding/lkg.md: is missing, or has no Go code"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := []string{"lkg/example_test.go", embeddingExample, "docs/embedding/lkg.md", c.page}
			for _, name := range embedded {
				if name != "lkg" {
					files = append(files, "docs/embedding/"+name+".md", block(link, body))
				}
			}
			wantOnly(t, EmbeddingPages(tree(t, files...)), c.want)
			if strings.Contains(c.want, "Go code that is not in") { // the same in front of all others
				files = []string{"lkg/example_test.go", embeddingExample, "README.md", strings.ReplaceAll(c.page, "../../", "")}
				for _, name := range embedded {
					files = append(files, "docs/embedding/"+name+".md", block(link, body))
				}
				wantOnly(t, EmbeddingPages(tree(t, files...)), c.want)
			}
		})
	}
}
