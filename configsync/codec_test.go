// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

type payload struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	MaxPods    int    `json:"maxPods"`
}

var payloadCodec = configsync.YAML[payload](configsync.YAMLOptions{APIVersion: "kubelet.config.k8s.io/v1beta1", Kind: "KubeletConfiguration"})

const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

func withData(pairs ...string) configsync.Object {
	data := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = pairs[i+1]
	}
	return configsync.Object{Data: data}
}

// R-CS-10: YAML and JSON both decode. R-CS-09: all from one object.
func TestYAMLDecodesBothEncodings(t *testing.T) {
	want := payload{"kubelet.config.k8s.io/v1beta1", "KubeletConfiguration", 42}
	for name, text := range map[string]string{
		"YAML": head + "maxPods: 42\n",
		"JSON": `{"maxPods":42,"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1"}`,
	} {
		got, limits, err := payloadCodec.Decode("kubelet", withData("kubelet", text, "other", "x: ["))
		if err != nil || got != want || limits != (lkg.Limits{}) {
			t.Errorf("%s: Decode = %+v, %+v, %v; want %+v and no limits", name, got, limits, err, want)
		}
	}
}

// R-CS-01, R-CS-40: what isn't of the type is refused, never guessed. R-CS-10: a missing or empty entry has an error
// of its own. A reader of the error learns the entry and nothing of its content. L-CS-14.
func TestYAMLRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		object  configsync.Object
		problem string
	}{
		"missing":         {withData("Kubelet", secret), "missing or empty"},
		"empty":           {withData("kubelet", ""), "missing or empty"},
		"blank":           {withData("kubelet", " \n"), "must not be empty"},
		"no apiVersion":   {withData("kubelet", "kind: KubeletConfiguration\n"), `"apiVersion" must be "kubelet.config.k8s.io/v1beta1"`},
		"other version":   {withData("kubelet", "apiVersion: "+secret+"\nkind: KubeletConfiguration\n"), `"apiVersion" must be`},
		"other kind":      {withData("kubelet", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: "+secret), `"kind" must be "KubeletConfiguration"`},
		"kind is a list":  {withData("kubelet", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: ["+secret+"]"), `"kind" must be a string`},
		"null":            {withData("kubelet", "null"), "must be a map or a list"},
		"list":            {withData("kubelet", "["+secret+"]"), "must be a map"},
		"unknown field":   {withData("kubelet", head+"maxPosd: "+secret), `field "maxPosd" is not known`},
		"case variant":    {withData("kubelet", head+"MaxPods: 42"), `is not known: want "maxPods"`},
		"wrong type":      {withData("kubelet", head+"maxPods: "+secret), `"maxPods" is a string of 6 bytes: want a whole`},
		"undecodable":     {withData("kubelet", head+"maxPods: ["+secret), "not valid YAML"},
		"alias":           {withData("kubelet", head+"maxPods: &a 1\nx: *a # "+secret), "anchors"},
		"second document": {withData("kubelet", head+"---\n"+secret+": 1\n"), "second document"},
	} {
		t.Run(name, func(t *testing.T) {
			got, limits, err := payloadCodec.Decode("kubelet", c.object)
			var decode *configsync.DecodeError
			if !errors.As(err, &decode) || decode.Key != "kubelet" || decode.Err == nil || got != (payload{}) || limits != (lkg.Limits{}) {
				t.Fatalf("Decode = %+v, %+v, %v; want nothing and a DecodeError of the entry", got, limits, err)
			}
			if s := err.Error(); !strings.Contains(s, c.problem) || strings.Contains(s, secret) || !strings.Contains(s, `"kubelet"`) {
				t.Errorf("error %q, want one with %q and nothing of the entry", s, c.problem)
			}
		})
	}
}

// A null at the top is no empty config, also where the type asks for no kind.
func TestYAMLOfUntypedPayloadRefusesNull(t *testing.T) {
	codec := configsync.YAML[struct{ A int }](configsync.YAMLOptions{})
	for _, text := range []string{"null", "~", "---\n", "# nothing\n"} {
		if got, _, err := codec.Decode("k", withData("k", text)); err == nil {
			t.Errorf("Decode(%q) = %+v, want an error", text, got)
		}
	}
	if got, _, err := codec.Decode("k", withData("k", "{}")); err != nil || got.A != 0 {
		t.Errorf("Decode of an empty map = %+v, %v", got, err)
	}
}

// R-CS-43, R-CS-47, R-CS-49: the limits of the trial travel with the config.
func TestLimitsTravelWithTheConfig(t *testing.T) {
	good := head + "maxPods: 1\n"
	for _, c := range []struct {
		data []string
		want lkg.Limits
	}{
		{nil, lkg.Limits{}},
		{[]string{"configTrialDuration", "1h30m"}, lkg.Limits{Trial: 90 * time.Minute}},
		{[]string{"crashLoopThreshold", "0"}, lkg.Limits{}},
		{[]string{"crashLoopThreshold", "10\n"}, lkg.Limits{CrashLoopThreshold: 10}},
		{
			[]string{"configTrialDuration", "10m\n", "crashLoopThreshold", "3", "minHealthyRun", "90s", "probeDeadline", "1.5m"},
			lkg.Limits{Trial: 10 * time.Minute, CrashLoopThreshold: 3, MinHealthyRun: 90 * time.Second, ProbeDeadline: 90 * time.Second},
		},
	} {
		_, got, err := payloadCodec.Decode("kubelet", withData(append(c.data, "kubelet", good)...))
		if err != nil || got != c.want {
			t.Errorf("%q: limits %+v, %v; want %+v", c.data, got, err, c.want)
		}
	}
}

// R-CS-47, R-CS-49: a limit that is out of range makes the object undecodable, and the error names its entry.
func TestLimitsOutOfRange(t *testing.T) {
	for key, values := range map[string][]string{
		configsync.KeyTrialDuration:      {"", "0", "0s", "-1m", "10", "ten minutes", "1000000h1000000000h", secret},
		configsync.KeyCrashLoopThreshold: {"", "-1", "11", "1.5", "0x1", "99999999999999999999", secret},
		configsync.KeyMinHealthyRun:      {"", "-1s", "1"},
		configsync.KeyProbeDeadline:      {"", "0s", secret},
	} {
		for _, value := range values {
			_, limits, err := payloadCodec.Decode("kubelet", withData("kubelet", head, key, value))
			var decode *configsync.DecodeError
			if !errors.As(err, &decode) || decode.Key != key || limits != (lkg.Limits{}) || strings.Contains(err.Error(), secret) {
				t.Errorf("%s = %q: limits %+v, %v; want a DecodeError of that entry", key, value, limits, err)
			}
		}
	}
}
