// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

const whyLinks = "a reader who follows a link that leads nowhere gives up, and a page that no index lists is never read"

var (
	fencedCode = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	pageLink   = regexp.MustCompile(`\]\(([^)\s]+)\)|(?m:^\[[^\]]+\]: (\S+)$)`)
	heading    = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	linkedText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// LinksLead checks that each link of a Markdown file to a file of the repository leads there, to its heading if it
// names one, and that an index lists each page below docs.
func LinksLead(t *Tree) []Violation {
	there := map[string]*File{".": nil}
	for _, f := range slices.Concat(t.Files, t.Data) {
		for dir := f.Dir(); dir != "."; dir = path.Dir(dir) {
			there[dir] = nil
		}
		there[f.Path] = f
	}
	var vs []Violation
	listed := map[string]bool{}
	for _, f := range t.Files {
		if path.Ext(f.Path) != ".md" {
			continue
		}
		for _, link := range f.linkTargets() {
			to, problem := f.followLink(link, there)
			if problem != "" {
				vs = append(vs, Violation{f.Path, fmt.Sprintf("links to %q: %s", link, problem), whyLinks})
			}
			listed[to] = listed[to] || isIndex(f.Path)
		}
	}
	for _, f := range t.Files {
		if path.Ext(f.Path) == ".md" && within(f.Dir(), "docs") && !isIndex(f.Path) && !listed[f.Path] {
			vs = append(vs, Violation{f.Path, "is a page that no README.md below docs lists", whyLinks})
		}
	}
	return vs
}

func isIndex(file string) bool {
	return within(path.Dir(file), "docs") && path.Base(file) == "README.md"
}

// linkTargets are the targets of a Markdown file inside the repository.
func (f *File) linkTargets() []string {
	text := codeSpan.ReplaceAllString(fencedCode.ReplaceAllString(string(f.Text), ""), "")
	var targets []string
	for _, m := range pageLink.FindAllStringSubmatch(text, -1) {
		if target := m[1] + m[2]; !strings.Contains(target, ":") {
			targets = append(targets, target)
		}
	}
	return targets
}

// followLink returns where a link of the file leads, and what is wrong with it.
func (f *File) followLink(link string, there map[string]*File) (to, problem string) {
	file, anchor, _ := strings.Cut(link, "#")
	to = f.Path
	if file != "" {
		to = path.Join(f.Dir(), file)
	}
	page, found := there[to]
	switch {
	case path.Ext(to) == ".png": // a tree holds text alone
		return to, ""
	case !found:
		return to, "there is no such file"
	case anchor != "" && (page == nil || !slices.Contains(page.headingAnchors(), anchor)):
		return to, "there is no such heading"
	default:
		return to, ""
	}
}

// headingAnchors are the headings of a Markdown file, as links name them.
func (f *File) headingAnchors() []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fencedCode.ReplaceAllString(string(f.Text), ""), -1) {
		text := strings.ToLower(linkedText.ReplaceAllString(strings.TrimSpace(m[1]), "$1"))
		all = append(all, strings.ReplaceAll(notInSlug.ReplaceAllString(text, ""), " ", "-"))
	}
	return all
}
