// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The table of metrics in docs/monitoring.md names each metric that is exported, and no other, with its labels.
func TestOperatingNamesEveryMetric(t *testing.T) {
	told := map[string][]string{}
	quoted := regexp.MustCompile("`([a-z_]+)`")
	for _, row := range regexp.MustCompile("(?m)^\\| `(belay_[a-z_]+)` \\|([^|]*)\\|").FindAllStringSubmatch(read(t, root+"/docs/monitoring.md"), -1) {
		labels := []string{}
		for _, l := range quoted.FindAllStringSubmatch(row[2], -1) {
			labels = append(labels, l[1])
		}
		slices.Sort(labels)
		told[row[1]] = labels
	}
	v := exported(t)
	is := map[string][]string{}
	for _, metric := range v.metricNames() {
		labels := slices.DeleteFunc(slices.Sorted(maps.Keys(v[metric])), func(l string) bool { return l == "le" })
		is[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(metric, "_bucket"), "_sum"), "_count")] = labels
	}
	for metric, labels := range is {
		if got, named := told[metric]; !named || !slices.Equal(got, labels) {
			t.Errorf("docs/monitoring.md tells of %s: %t, with the labels %q, want %q", metric, named, got, labels)
		}
	}
	for metric := range told {
		if _, exists := is[metric]; !exists {
			t.Errorf("docs/monitoring.md tells of %s, which belay does not export", metric)
		}
	}
}
