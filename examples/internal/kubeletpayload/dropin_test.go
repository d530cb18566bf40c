// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeletpayload

import (
	"strings"
	"testing"
)

// L-CS-39: what a kubelet decides before it looks at its drop-ins. That it does is shown by the kubelet itself, in package settings.
func TestFilled(t *testing.T) {
	const freq = `"nodeStatusReportFrequency":"5m0s"`
	for text, want := range map[string]string{
		head:                                  `{` + freq + `,"serializeImagePulls":true}`,
		head + "maxParallelImagePulls: 1\n":   `{` + freq + `,"serializeImagePulls":true}`,
		head + "maxParallelImagePulls: 2\n":   `{` + freq + `,"serializeImagePulls":false}`,
		head + "serializeImagePulls: false\n": `{` + freq + `}`,
		head + "serializeImagePulls: true\nnodeStatusReportFrequency: 1m\n": `{}`,
		head + "serializeImagePulls: true\nnodeStatusUpdateFrequency: 9s\n": `{"nodeStatusReportFrequency":"9s"}`,
		head + "enforceNodeAllocatable: []\n":                               `{"enforceNodeAllocatable":["pods"],` + freq + `,"serializeImagePulls":true}`,
		head + "enforceNodeAllocatable: [none]\n":                           `{` + freq + `,"serializeImagePulls":true}`,
		"maxPods: 3\n": "",
	} {
		if got := string(Filled([]byte(text))); got != want {
			t.Errorf("Filled(%q) = %s, want %s", text, got, want)
		}
	}
}

// L-CS-38: a kubelet takes no drop-in that doesn't say what it is, and no error repeats what is in one.
func TestPart(t *testing.T) {
	for text, want := range map[string]string{
		head + "maxPods: 3\n":     "",
		"":                        "empty",
		"maxPods: 3\n":            `"apiVersion" must be`,
		head + "secret: secret\n": "is not known",
		head + "a: &secret b\n":   "anchors",
	} {
		err := Part([]byte(text))
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "&secret")) {
			t.Errorf("Part(%q) = %v, want %q", text, err, want)
		}
	}
}

// Where enforceNodeAllocatable is absent the kubelet's default counts; an empty list is none.
func TestEnforcementThatIsAbsent(t *testing.T) {
	for text, bad := range map[string]bool{"": true, "enforceNodeAllocatable: []\n": false, "enforceNodeAllocatable: [none]\n": false, "enforceNodeAllocatable: null\n": true} {
		c, err := decode([]byte(head + "cgroupsPerQOS: false\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		if err := Validators()[0].Validate(t.Context(), &c); (err != nil) != bad {
			t.Errorf("cgroupsPerQOS: false with %q: %v, want an error: %t", text, err, bad)
		}
	}
}
