// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import "testing"

func TestLinksLeadCatches(t *testing.T) {
	const index, page = "docs/README.md", "docs/page.md"
	const lists = "# All\n\n[page](page.md)\n"
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"good": {[]string{
			index, lists + "[a](page.md#a-b), [dir](..), [web](https://example.com/x.md)\n", page, "# A `b`\n\n[up](#a-b)\n",
		}, ""},
		"code":         {[]string{index, lists + "`[a](x)`\n\n```\n[a](x)\n```\n", page, "# Page\n"}, ""},
		"picture":      {[]string{index, lists + "![a](a.png)\n", page, "# Page\n"}, ""},
		"no file":      {[]string{index, lists + "[a](x.md)\n", page, "# Page\n"}, `"x.md": there is no such file`},
		"by reference": {[]string{index, lists + "[a]: x.md\n", page, "# Page\n"}, `links to "x.md"`},
		"no heading":   {[]string{index, lists + "[a](page.md#b)\n", page, "# Page\n"}, `"page.md#b": there is no such head`},
		"not listed":   {[]string{index, "# All\n", page, "# Page\n"}, "docs/page.md: is a page that no"},
		"linked alone": {[]string{index, "# All\n", "README.md", "[a](docs/page.md)\n", page, "# Page\n"}, "is a page"},
	} {
		t.Run(name, func(t *testing.T) { wantOnly(t, LinksLead(tree(t, c.files...)), c.want) })
	}
}
