// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/belayproject/belay/configsync/internal/tree"
)

// A binding is a file below the kubelet's root directory that the kubelet writes under one config and refuses to
// start with under another. What is listed was seen on kubelets 1.34 to 1.37. A file goes aside in both directions,
// to a newer config and back to an older one, and returns when the config that wrote it returns.
type binding struct {
	// file is relative to the root directory. A * stands for one name.
	file string
	// policy is the field that the file repeats under "policyName", and usual is its default. Under that default no
	// other field counts.
	policy field
	usual  string
	// fields are what else the file was written under, and no longer fits when it changes.
	fields []field
	// length is the field that is the length of the mapping in the file, and usual its default.
	length field
	// mayBeEmpty is set where the kubelet reads an empty file like an absent one. It refuses to start with any
	// other file that is no JSON.
	mayBeEmpty bool
	// drains is set where the pods that run were started under what the file says: they should leave the node
	// before it goes.
	drains bool
}

// A field is a field of a KubeletConfiguration, and the kubelet's flag that overrules it.
type field struct{ path, flag string }

// allBindings are all files that are known to bind a config. Files without fields bind none, but a damaged one stops
// every config.
//
// These bind nothing: topologyManagerPolicy and topologyManagerScope have no file; kubelet_internal_checkpoint of
// device plugins, dra_health_state and graceful_node_shutdown_state are read again or left unread where they are
// damaged. A root directory is a flag, and no config changes it.
func allBindings() []*binding {
	return []*binding{
		{
			file: "cpu_manager_state", policy: field{"cpuManagerPolicy", "cpu-manager-policy"}, usual: "none", drains: true,
			fields: []field{
				{"cpuManagerPolicyOptions", "cpu-manager-policy-options"}, {"reservedSystemCPUs", "reserved-cpus"},
				{"kubeReserved.cpu", "kube-reserved"}, {"systemReserved.cpu", "system-reserved"},
			},
		},
		{
			file: "memory_manager_state", policy: field{"memoryManagerPolicy", "memory-manager-policy"}, usual: "None",
			drains: true,
			fields: []field{{"reservedMemory", "reserved-memory"}},
		},
		{file: "pods/*/userns", length: field{path: "userNamespaces.idsPerPod"}, usual: "65536",
			mayBeEmpty: true, drains: true},
		{file: "dra_manager_state"}, {file: "allocated_pods_state"}, {file: "actuated_pods_state"},
	}
}

// A boundValue is what a config gives the fields of a binding. The zero value is not known.
type boundValue struct {
	// Policy is the value of the policy, or of the length.
	Policy string `json:"policy,omitempty"`
	// Fields is a digest of the other fields; empty where they do not count.
	Fields string `json:"fields,omitempty"`
}

// A kubeletConfig is a KubeletConfiguration as decoded JSON, and the flags of the kubelet beside it.
type kubeletConfig struct {
	doc  map[string]any
	args []string
}

// readConfig reads a KubeletConfiguration in YAML or JSON. An empty document holds no field.
func readConfig(doc []byte, args []string) (kubeletConfig, error) {
	if tree.Empty(doc) {
		return kubeletConfig{args: args}, nil
	}
	read, err := tree.Read(doc)
	if err != nil {
		return kubeletConfig{}, fmt.Errorf("reading the kubelet's config: %w", err)
	}
	fields, _ := read.(map[string]any) // else it holds no field
	return kubeletConfig{fields, args}, nil
}

// valueOf returns the value of a field as text: that of its flag where the kubelet has it, and an empty text where
// the field is not set.
func (c kubeletConfig) valueOf(f field) string {
	if value, ok := flagValue(c.args, f.flag); ok {
		return value
	}
	var at any = c.doc
	for name := range strings.SplitSeq(f.path, ".") {
		object, ok := at.(map[string]any)
		if !ok {
			return ""
		}
		at = object[name]
	}
	switch v := at.(type) {
	case nil:
		return ""
	case string:
		return v
	case map[string]any:
		if len(v) == 0 {
			return ""
		}
	case []any:
		if len(v) == 0 {
			return ""
		}
	}
	text, err := json.Marshal(at)
	if err != nil {
		return ""
	}
	return string(text)
}

// flagValue returns the value of the last flag of that name, as --name=value or --name value.
func flagValue(args []string, name string) (value string, ok bool) {
	if name == "" {
		return "", false
	}
	for i, arg := range slices.Backward(args) {
		if v, found := strings.CutPrefix(arg, "--"+name+"="); found {
			return v, true
		}
		if arg == "--"+name && i+1 < len(args) {
			return args[i+1], true
		}
	}
	return "", false
}

// valueIn returns what a config gives the fields of the binding.
func (b *binding) valueIn(c kubeletConfig) boundValue {
	if b.policy.path == "" && b.length.path == "" {
		return boundValue{}
	}
	v := boundValue{Policy: c.valueOf(b.policy)}
	if b.length.path != "" {
		v.Policy = c.valueOf(b.length)
	}
	if v.Policy == "" {
		v.Policy = b.usual
	}
	if v.Policy == b.usual || len(b.fields) == 0 {
		return v
	}
	h := sha256.New()
	for _, f := range b.fields {
		fmt.Fprintf(h, "%s=%q\n", f.path, c.valueOf(f))
	}
	v.Fields = hex.EncodeToString(h.Sum(nil)[:6])
	return v
}

// A content is what a file says about the config that it was written under.
type content struct {
	// damaged is set where no kubelet starts with the file.
	damaged bool
	// policy is the value in the file; empty where it names none.
	policy string
}

// readContent reads a file of the binding.
func (b *binding) readContent(text []byte) content {
	if len(text) == 0 && b.mayBeEmpty {
		return content{}
	}
	if !json.Valid(text) {
		return content{damaged: true}
	}
	var says struct {
		PolicyName  string `json:"policyName"`
		UIDMappings []struct {
			Length int64 `json:"length"`
		} `json:"uidMappings"`
	}
	if json.Unmarshal(text, &says) != nil {
		return content{} // of another shape
	}
	switch {
	case b.policy.path != "":
		return content{policy: says.PolicyName}
	case b.length.path != "" && len(says.UIDMappings) == 1:
		return content{policy: fmt.Sprint(says.UIDMappings[0].Length)}
	}
	return content{}
}

// drainedBy returns the fields by which two configs bind a file in different ways, where pods should leave the node
// before.
func drainedBy(from, to kubeletConfig) []string {
	var out []string
	for _, b := range allBindings() {
		if !b.drains || b.valueIn(from) == b.valueIn(to) {
			continue
		}
		for _, f := range append([]field{b.policy, b.length}, b.fields...) {
			if f.path != "" && from.valueOf(f) != to.valueOf(f) {
				out = append(out, f.path)
			}
		}
	}
	return out
}

// asideDir is where files go, below the root directory: on the same file system, so that one rename moves a file
// whole.
const asideDir = "belay-aside"

// keptAside bounds the files that are kept under one name, and keptInAll those under all.
const (
	keptAside = 8
	keptInAll = 512
)

// A boundRecord is what is on record about the files that bind a config.
type boundRecord struct {
	// Values are those of the config that the kubelet was started with last, by the name of the binding.
	Values map[string]boundValue `json:"values,omitempty"`
	// Aside are the files that were moved, the oldest first.
	Aside []asideFile `json:"aside,omitempty"`
	// Number is that of the last file that was moved, Epoch that of this version of the record.
	Number int `json:"number,omitempty"`
	Epoch  int `json:"epoch,omitempty"`
	// Newest is set in what was written while there were no records: it is newer than each of them.
	Newest bool `json:"newest,omitempty"`
	// Moved holds the boot in which a file went aside because the kubelet had ended because of it.
	Moved map[string]string `json:"moved,omitempty"`
	// Intent is what was begun, and is perhaps done.
	Intent *boundIntent `json:"intent,omitempty"`
}

// An asideFile is a file that was moved aside.
type asideFile struct {
	// Binding and File are the names where it was, Name is that in the directory for them.
	Binding string `json:"binding"`
	File    string `json:"file"`
	Name    string `json:"name"`
	// Value is what it was written under; zero where that is not known: then it does not return.
	Value boundValue `json:"value"`
}

// A boundIntent is a set of moves, and the record that is true once they are done.
type boundIntent struct {
	Moves []fileMove  `json:"moves"`
	Next  boundRecord `json:"next"`
}

// A fileMove is a file below the root directory that goes aside or returns.
type fileMove struct {
	// From and To are names relative to the root directory.
	From string `json:"from"`
	To   string `json:"to"`
	// Why says what the file was written under, and what the kubelet is started with.
	Why string `json:"why"`
}

// String describes the move for a log.
func (m fileMove) String() string { return fmt.Sprintf("%s to %s: %s", m.From, m.To, m.Why) }

// A lookAt is a file of a binding, as it lies on disk.
type lookAt struct {
	binding *binding
	file    string
	there   bool
	content content
}

// A boundPlan is what is to be done before a start, and the record after it. Planning it changes nothing.
type boundPlan struct {
	moves []fileMove
	next  boundRecord
}

// planMoves compares what the kubelet ran with, what it is to run with and what lies on disk. unsure says that it
// is not known what the kubelet ran with last.
func planMoves(rec boundRecord, want kubeletConfig, files []lookAt, unsure bool) boundPlan {
	p := boundPlan{next: boundRecord{
		Values: map[string]boundValue{}, Aside: slices.Clone(rec.Aside), Number: rec.Number, Epoch: rec.Epoch + 1,
		Moved: rec.Moved,
	}}
	for _, b := range allBindings() {
		if v := b.valueIn(want); v != (boundValue{}) {
			p.next.Values[b.file] = v
		}
	}
	for _, f := range files {
		b, wanted := f.binding, p.next.Values[f.binding.file]
		there := f.there
		if there {
			if label, why := b.whyAside(f.content, rec.Values[b.file], wanted, unsure); why != "" {
				p.moveAside(f, label, why)
				there = false
			}
		}
		if !there && wanted != (boundValue{}) {
			p.moveBack(f, wanted)
		}
	}
	return p
}

// whyAside says why a file has to go, and what it was written under; why is empty where it can stay.
func (b *binding) whyAside(c content, ran, wanted boundValue, unsure bool) (label boundValue, why string) {
	switch {
	case c.damaged:
		return boundValue{}, "it is damaged: no kubelet starts with it"
	case wanted == (boundValue{}):
		return boundValue{}, ""
	case c.policy != "" && c.policy != wanted.Policy:
		if ran.Policy == c.policy {
			label = ran
		} else if c.policy == b.usual || len(b.fields) == 0 {
			label = boundValue{Policy: c.policy}
		}
		return label, fmt.Sprintf("it was written under %q, the kubelet is started with %q", c.policy, wanted.Policy)
	case wanted.Fields == "" || ran == wanted:
		return boundValue{}, ""
	case ran == (boundValue{}) && !unsure:
		return boundValue{}, "" // the first start under this record: it is taken for the config's own
	}
	return ran, fmt.Sprintf("it was written under other values of fields beside %s, %q", b.policy.path, wanted.Policy)
}

func (p *boundPlan) moveAside(f lookAt, label boundValue, why string) {
	p.next.Number++
	name := fmt.Sprintf("%s.%d", strings.ReplaceAll(f.file, "/", "_"), p.next.Number)
	p.moves = append(p.moves, fileMove{From: f.file, To: path.Join(asideDir, name), Why: why})
	p.next.Aside = append(p.next.Aside, asideFile{Binding: f.binding.file, File: f.file, Name: name, Value: label})
}

// moveBack returns the newest file that was written under the wanted values.
func (p *boundPlan) moveBack(f lookAt, wanted boundValue) {
	for i, a := range slices.Backward(p.next.Aside) {
		if a.File == f.file && a.Value == wanted {
			p.moves = append(p.moves, fileMove{
				From: path.Join(asideDir, a.Name), To: f.file, Why: "the config that it was written under returns",
			})
			p.next.Aside = slices.Delete(p.next.Aside, i, i+1)
			return
		}
	}
}

// dropOldest drops the oldest files beyond those that are kept.
func (p *boundPlan) dropOldest() {
	p.next.Aside = slices.Delete(p.next.Aside, 0, max(0, len(p.next.Aside)-keptInAll))
	count := map[string]int{}
	for _, a := range p.next.Aside {
		count[a.File]++
	}
	p.next.Aside = slices.DeleteFunc(p.next.Aside, func(a asideFile) bool {
		if count[a.File] <= keptAside {
			return false
		}
		count[a.File]--
		return true
	})
}

// changesNothing reports whether a plan leaves disk and record as they are.
func (p boundPlan) changesNothing(rec boundRecord) bool {
	return len(p.moves) == 0 && rec.Intent == nil && maps.Equal(p.next.Values, rec.Values) &&
		len(p.next.Aside) == len(rec.Aside)
}
