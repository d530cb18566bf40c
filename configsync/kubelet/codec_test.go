// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/layers"
	"github.com/belayproject/belay/lkg"
)

const head = documentHead

var defaults = CodecOptions{Trial: 7 * time.Minute, CrashLoopThreshold: 3, NeedsHealthz: true}

// object is a ConfigMap with text under the key kubelet, and more entries.
func object(uid, text string, more map[string]string) configsync.Object {
	data := map[string]string{Key: text}
	maps.Copy(data, more)
	return configsync.Object{Namespace: "ns", Name: "c", UID: uid, Data: data}
}

// R-CS-10: both encodings decode.
func TestDecodeTakesYAMLAndJSON(t *testing.T) {
	for _, text := range []string{
		head + "maxPods: 42\n",
		`{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","maxPods":42}`,
	} {
		c, _, err := Codec(defaults).Decode(Key, object("u", text, nil))
		if err != nil || c.MaxPods != 42 {
			t.Errorf("Decode(%q) = %+v, %v, want maxPods 42", text, c, err)
		}
	}
}

// R-CS-01, R-CS-40: what is not one plain document of this version is refused as a decode failure. Its fields are
// judged by the kubelet.
func TestDecodeIsStrict(t *testing.T) {
	for name, text := range map[string]string{
		"other version":   strings.Replace(head, "v1beta1", "v1", 1),
		"other kind":      strings.Replace(head, kind, "KubeProxyConfiguration", 1),
		"no kind":         "maxPods: 1\n",
		"wrong type":      head + "maxPods: many\n",
		"no YAML":         head + "{",
		"empty":           "",
		"two documents":   head + "---\n" + head,
		"key twice":       head + "maxPods: 1\nmaxPods: 2\n",
		"instance value":  head + "providerID: a://b\n",
		"no health check": head + "healthzPort: 0\n",
	} {
		t.Run(name, func(t *testing.T) {
			var de *configsync.DecodeError
			if _, _, err := Codec(defaults).Decode(Key, object("u", text, nil)); !errors.As(err, &de) || de.Key != Key {
				t.Errorf("Decode = %v, want a DecodeError of the entry", err)
			}
		})
	}
}

// R-CS-06: what belongs to one node may stand in that node's init config, which has no UID.
func TestTheInitConfigMayHoldInstanceValues(t *testing.T) {
	text := head + "providerID: a://b\nhealthzPort: 0\n"
	if _, _, err := Codec(defaults).Decode(Key, object("", text, nil)); err != nil {
		t.Errorf("Decode = %v, want nil", err)
	}
	quiet := defaults
	quiet.NeedsHealthz = false
	if _, _, err := Codec(quiet).Decode(Key, object("u", head+"healthzPort: 0\n", nil)); err != nil {
		t.Errorf("without a need for it: %v, want nil", err)
	}
}

// R-CS-43: the limits travel with the config; where it says nothing, the node's own apply. A threshold of 0 is said.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		more map[string]string
		want lkg.Limits
	}{
		{nil, lkg.Limits{Trial: 7 * time.Minute, CrashLoopThreshold: 3}},
		{map[string]string{configsync.KeyTrialDuration: "1h"}, lkg.Limits{Trial: time.Hour, CrashLoopThreshold: 3}},
		{map[string]string{configsync.KeyCrashLoopThreshold: "0"}, lkg.Limits{Trial: 7 * time.Minute}},
		{map[string]string{configsync.KeyCrashLoopThreshold: "10"},
			lkg.Limits{Trial: 7 * time.Minute, CrashLoopThreshold: 10}},
	} {
		if _, got, err := Codec(defaults).Decode(Key, object("u", head, c.more)); err != nil || got != c.want {
			t.Errorf("with %v: limits %+v, %v, want %+v", c.more, got, err, c.want)
		}
	}
	for _, bad := range []string{"11", "-1", "x"} { // R-CS-49
		if _, _, err := Codec(defaults).Decode(Key,
			object("u", head, map[string]string{configsync.KeyCrashLoopThreshold: bad})); err == nil {
			t.Errorf("threshold %q was taken", bad)
		}
	}
}

// R-CS-06: a config from a source names each field that nodes can't share, and never a value.
func TestDecodeSaysWhichFieldsNodesCantShare(t *testing.T) {
	text := head + "providerID: a://b\npodCIDR: 10.0.0.0/24\nhealthzPort: 0\n"
	_, _, err := Codec(defaults).Decode(Key, object("u", text, nil))
	for _, field := range []string{"providerID", "podCIDR", "healthzPort"} {
		if !strings.Contains(fmt.Sprint(err), field+" must") {
			t.Errorf("Decode = %v, want it to name %s", err, field)
		}
	}
	for _, value := range []string{"a://b", "10.0.0.0"} {
		if strings.Contains(fmt.Sprint(err), value) {
			t.Errorf("Decode = %v, which repeats the value %q", err, value)
		}
	}
}

// Strict judges the config of a source alone: not what the node lays around it, and not the local config.
func TestStrictnessIsForTheWantedConfigAlone(t *testing.T) {
	strict := defaults
	strict.Strict = func(doc []byte) error {
		if strings.Contains(string(doc), "newer") {
			return errors.New("unknown field")
		}
		return nil
	}
	strict.Around = func() (layers.Stack, error) { return layers.Stack{Init: []byte(head + "newer: 1\n")}, nil }
	for _, c := range []struct {
		uid, text string
		refused   bool
	}{{"u", "", false}, {"u", "newer: 2\n", true}, {"", "newer: 2\n", false}} {
		if _, _, err := Codec(strict).Decode(Key, object(c.uid, head+c.text, nil)); (err != nil) != c.refused {
			t.Errorf("Decode(UID %q, %q) = %v, want an error: %t", c.uid, c.text, err, c.refused)
		}
	}
}

// A relative path means another file on each node; a local config may hold one.
func TestPathsOfASourceAreAbsolute(t *testing.T) {
	for _, c := range []struct{ uid, text, want string }{
		{"u", "authentication: {x509: {clientCAFile: secret/ca.crt}}\ntlsCertFile: b\n",
			"tlsCertFile must be an absolute path; authentication.x509.clientCAFile must be an absolute path"},
		{"u", "staticPodPath: /etc/kubernetes/manifests\npodLogsDir: \"\"\ntlsCertFile: 5\n", "<nil>"},
		{"u", "{", "<nil>"},
		{"", "staticPodPath: a/b\n", "<nil>"},
	} {
		if got := fmt.Sprint(AbsolutePaths().Inspect(t.Context(), Key, object(c.uid, head+c.text, nil))); got != c.want {
			t.Errorf("Inspect(UID %q, %q) = %s, want %s", c.uid, c.text, got, c.want)
		}
	}
}
