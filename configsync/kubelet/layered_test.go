// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/layers"
)

// around is a codec on a node that lays these documents around every config.
func around(s layers.Stack, dropIn bool) configsync.Codec[*Config] {
	o := defaults
	o.Around, o.DropIn = func() (layers.Stack, error) { return s, nil }, dropIn
	return Codec(o)
}

// L-CS-39, R-CS-06: what is decoded, and so validated, is the merged result, but what must not be in a config that
// nodes share is looked for in that config itself, and it must name its kind, as each drop-in must.
func TestDecodeAroundAConfig(t *testing.T) {
	kubeadm := head +
		"providerID: a://b\nmaxPods: 110\nclusterDNS: [10.0.0.10, 10.0.0.11]\nevictionHard: {memory.available: 1Gi}\n"
	for name, c := range map[string]struct {
		stack     layers.Stack
		uid, text string
		want      string // part of the error; empty: none
		maxPods   int32
		holds     string // part of the merged document
	}{
		"of the node below": {
			layers.Stack{Init: []byte(kubeadm)}, "u",
			head + "maxPods: 42\nclusterDNS: []\nevictionHard: {nodefs.available: 5%}\n", "", 42,
			`"clusterDNS":[],"evictionHard":{"memory.available":"1Gi","nodefs.available":"5%"}`,
		},
		"of the node above": {
			layers.Stack{Node: []byte("maxPods: 7\nproviderID: a://b\n")}, "u", head + "maxPods: 42\n", "", 7, `"maxPods":7`,
		},
		"local": {layers.Stack{Node: []byte("maxPods: 7\n")}, "", kubeadm, "", 7, `["10.0.0.10","10.0.0.11"]`},
		"its own node": {layers.Stack{Init: []byte(kubeadm)}, "u", head + "providerID: c://d\n",
			"providerID must not be set", 0, ""},
		"no kind": {layers.Stack{Init: []byte(kubeadm)}, "u", "maxPods: 42\n", `field "apiVersion" must be`, 0, ""},
		"unknown below": {
			layers.Stack{Init: []byte(kubeadm + "maxPod: 1\n")}, "u", head + "maxPods: 3\n", "", 3, `"maxPod":1`,
		},
		"no health": {layers.Stack{Node: []byte("healthzPort: 0\n")}, "u", head, "healthzPort must not be 0", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, limits, err := around(c.stack, true).Decode(Key,
				object(c.uid, c.text, map[string]string{configsync.KeyCrashLoopThreshold: "5"}))
			var de *configsync.DecodeError
			if c.want != "" {
				if !errors.As(err, &de) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("Decode = %v, want a DecodeError with %q", err, c.want)
				}
				return
			}
			if err != nil || got.MaxPods != c.maxPods || !strings.Contains(string(got.Document), c.holds) ||
				limits.CrashLoopThreshold != 5 {
				t.Errorf("Decode = %+v, limits %+v, %v, want %+v and the object's limits", got, limits, err, c)
			}
		})
	}
}

// L-CS-38, L-CS-13: a drop-in is the config byte for byte, and none for the local config; a whole file is the merged
// result.
func TestText(t *testing.T) {
	raw := head + "# by hand\nmaxPods: 42\n"
	node := layers.Stack{Node: []byte("podsPerCore: 3\n")}
	for name, c := range map[string]struct {
		codec configsync.Codec[*Config]
		uid   string
		want  string
		ok    bool
	}{
		"no layers":        {Codec(defaults), "u", raw, true},
		"no layers, local": {Codec(defaults), "", raw, true},
		"a drop-in":        {around(node, true), "u", raw, true},
		"a drop-in, local": {around(node, true), "", "", false},
		"with an overlay": {
			around(node, false), "u",
			`{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","maxPods":42,"podsPerCore":3}`, true,
		},
		"an overlay, local": {
			around(node, false), "",
			`{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","maxPods":42,"podsPerCore":3}`, true,
		},
		"an overlay of spaces": {around(layers.Stack{Node: []byte(" \n")}, false), "u", raw, true},
	} {
		got, ok, err := Text(c.codec, Key, object(c.uid, raw, nil))
		if err != nil || ok != c.ok || string(got) != c.want {
			t.Errorf("%s: Text = %q, %t, %v, want %q, %t", name, got, ok, err, c.want, c.ok)
		}
	}
}

// L-CS-12: an explanation names the layer of each field that is not from the config itself.
func TestOrigins(t *testing.T) {
	c := around(layers.Stack{
		Init: []byte(head + "maxPods: 1\nclusterDNS: [10.0.0.10, 10.0.0.11]\nevictionHard: {memory.available: 1Gi}\n"),
		Node: []byte("podsPerCore: 3\n"),
	}, true).(configsync.Origins)
	got, err := c.Origins(Key, object("u", head+"maxPods: 42\nsystemReserved: {cpu: 1}\n", nil))
	want := map[string]string{"clusterDNS": "init", "evictionHard.memory.available": "init", "podsPerCore": "node"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("Origins = %v, %v, want %v", got, err, want)
	}
	if none, err := Codec(defaults).(configsync.Origins).Origins(Key, object("u", head, nil)); err != nil ||
		len(none) > 0 {
		t.Errorf("without layers Origins = %v, %v, want none", none, err)
	}
}
