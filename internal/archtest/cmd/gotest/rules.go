// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// A rule allows some tests to be skipped.
type rule struct {
	pkg  string
	test *regexp.Regexp
	why  string
}

func (r rule) allows(pkg, test string) bool { return r.pkg == pkg && r.test.MatchString(test) }

// readRules reads the rules of a file. No file, no rules.
func readRules(name string) ([]rule, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the allowed skips: %w", err)
	}
	rules, err := parseRules(string(text))
	if err != nil {
		return nil, fmt.Errorf("reading the allowed skips: %q: %w", name, err)
	}
	return rules, nil
}

func parseRules(text string) ([]rule, error) {
	var rules []rule
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) < 3 {
			return nil, fmt.Errorf("line %d: must be package, test and why", i+1)
		}
		test, err := regexp.Compile("^(?:" + fields[1] + ")$")
		if err != nil {
			return nil, fmt.Errorf("line %d: reading the test's pattern: %w", i+1, err)
		}
		rules = append(rules, rule{pkg: fields[0], test: test, why: strings.Join(fields[2:], " ")})
	}
	return rules, nil
}
