// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/layers"
	"github.com/belayproject/belay/lkg"
)

const (
	// Key is the entry of a ConfigMap's data that holds the config.
	Key = "kubelet"
	// documentHead begins each document in YAML: its apiVersion and kind.
	documentHead = "apiVersion: " + apiVersion + "\nkind: " + kind + "\n"

	apiVersion = "kubelet.config.k8s.io/v1beta1"
	kind       = "KubeletConfiguration"
)

// The kubelet's defaults for its health endpoint.
const (
	defaultHealthzAddress = "127.0.0.1"
	defaultHealthzPort    = 10248
)

// Config has the fields of a KubeletConfiguration that an agent reads. A field that the document leaves out is zero;
// no default of the kubelet is filled in.
type Config struct {
	HealthzBindAddress string `json:"healthzBindAddress"`
	HealthzPort        *int32 `json:"healthzPort"`
	ProviderID         string `json:"providerID"`
	PodCIDR            string `json:"podCIDR"`
	MaxPods            int32  `json:"maxPods"`
	FailSwapOn         *bool  `json:"failSwapOn"`
	// Document is the whole document in JSON, with the fields that this type lacks.
	Document []byte `json:"-"`
}

// Healthz returns the address and port of the kubelet's /healthz under the config. ok is false if the config turns
// the endpoint off.
func (c *Config) Healthz() (address, port string, ok bool) {
	if c == nil {
		return "", "", false
	}
	address = c.HealthzBindAddress
	if address == "" {
		address = defaultHealthzAddress
	}
	n := int32(defaultHealthzPort)
	if c.HealthzPort != nil {
		n = *c.HealthzPort
	}
	if parsed, err := netip.ParseAddr(address); err == nil && parsed.IsUnspecified() {
		address = defaultHealthzAddress // it listens on all addresses, this one too
	}
	return address, strconv.Itoa(int(n)), n != 0
}

// CodecOptions say how a node reads configs.
type CodecOptions struct {
	// Trial and CrashLoopThreshold are the limits of a config that carries none.
	Trial              time.Duration
	CrashLoopThreshold int
	// NeedsHealthz refuses a config from a source that turns the kubelet's health endpoint off: it could never be
	// promoted.
	NeedsHealthz bool
	// Strict judges the document of a config from a source alone, as JSON, where no kubelet does. Nil judges nothing.
	Strict func(doc []byte) error
	// Around returns the documents that the node lays around every config, at each start anew. Nil is none.
	Around func() (layers.Stack, error)
	// DropIn says that the kubelet merges by itself, from a directory of drop-ins: see [Text].
	DropIn bool
}

// Codec decodes kubelet configs. A config from a source, which has a UID, must pass configsync.Gate, name its
// apiVersion and kind, hold no value that belongs to one node, and no field of Config with a value of another type.
// The local config of a node, and what the node lays around a config, are read as leniently as the kubelet reads
// them. The fields that Config lacks are judged by the kubelet: see [NewProver].
func Codec(o CodecOptions) configsync.Codec[*Config] { return codec{o} }

type codec struct{ o CodecOptions }

// Decode implements configsync.Codec.
func (c codec) Decode(key string, o configsync.Object) (*Config, lkg.Limits, error) {
	fail := func(err error) (*Config, lkg.Limits, error) {
		return nil, lkg.Limits{}, &configsync.DecodeError{Key: key, Err: err}
	}
	if o.Data[key] == "" {
		return fail(errors.New("the entry is missing or empty; it must hold the config"))
	}
	limits, err := configsync.LimitsOf(o)
	if err != nil {
		return nil, lkg.Limits{}, err
	}
	own, doc, err := c.readDocuments(key, o)
	if err != nil {
		return fail(err)
	}
	cfg, err := decodeConfig(doc)
	if err == nil && o.UID != "" {
		err = c.checkShared(own, cfg)
	}
	if err != nil {
		return fail(err)
	}
	if limits.Trial == 0 {
		limits.Trial = c.o.Trial
	}
	if _, said := o.Data[configsync.KeyCrashLoopThreshold]; !said {
		limits.CrashLoopThreshold = c.o.CrashLoopThreshold
	}
	return cfg, limits, nil
}

// readDocuments returns the config itself, and what becomes of it on this node.
func (c codec) readDocuments(key string, o configsync.Object) (own, merged []byte, err error) {
	text := []byte(o.Data[key])
	if o.UID == "" {
		own, err = toJSON(text)
	} else {
		own, err = configsync.Gate(text, configsync.GateLimits{})
	}
	if err == nil {
		err = checkHead(own)
	}
	if err == nil && o.UID != "" && c.o.Strict != nil {
		err = c.o.Strict(own)
	}
	if err != nil || c.o.Around == nil {
		return own, own, err
	}
	m, err := c.mergeLayers(key, o)
	if err != nil {
		return nil, nil, err
	}
	merged, err = toJSON(m.Doc)
	return own, merged, err
}

func (c codec) mergeLayers(key string, o configsync.Object) (layers.Merged, error) {
	stack, err := c.o.Around()
	if err != nil {
		return layers.Merged{}, err
	}
	if o.UID != "" {
		return stack.Of(key, o)
	}
	doc, err := readLenient([]byte(o.Data[key]))
	if err != nil {
		return layers.Merged{}, err
	}
	return stack.Of(key, configsync.Object{Data: map[string]string{key: string(doc)}})
}

// checkHead refuses a document that is no kubelet config of this version.
func checkHead(doc []byte) error {
	fields, err := fieldsOf(doc)
	if err != nil {
		return err
	}
	for _, f := range []struct{ name, want string }{{"apiVersion", apiVersion}, {"kind", kind}} {
		var got string
		if json.Unmarshal(fields[f.name], &got) != nil || got != f.want {
			return fmt.Errorf("field %q must be %q", f.name, f.want)
		}
	}
	return nil
}

// fieldsOf returns the fields of a document in JSON.
func fieldsOf(doc []byte) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(doc, &fields) != nil {
		return nil, errors.New("document must be a map")
	}
	return fields, nil
}

// decodeConfig reads the fields of Config. It tells cases apart, as the kubelet does.
func decodeConfig(doc []byte) (*Config, error) {
	fields, err := fieldsOf(doc)
	if err != nil {
		return nil, err
	}
	c := &Config{Document: doc}
	for name, into := range map[string]any{
		"healthzBindAddress": &c.HealthzBindAddress, "healthzPort": &c.HealthzPort, "providerID": &c.ProviderID,
		"podCIDR": &c.PodCIDR, "maxPods": &c.MaxPods, "failSwapOn": &c.FailSwapOn,
	} {
		if raw, ok := fields[name]; ok && json.Unmarshal(raw, into) != nil {
			return nil, fmt.Errorf("field %q has a value of another type", name)
		}
	}
	return c, nil
}

// pathFields name files. The kubelet takes a relative path from the directory of the file that it reads, which is not
// the author's.
var pathFields = []string{"staticPodPath", "tlsCertFile", "tlsPrivateKeyFile", "podLogsDir",
	"authentication.x509.clientCAFile"}

// AbsolutePaths returns an inspector that refuses a config from a source if it names a file by a relative path.
func AbsolutePaths() configsync.Inspector { return absolutePaths{} }

type absolutePaths struct{}

// Inspect implements configsync.Inspector. A document that cannot be read is left to the codec.
func (absolutePaths) Inspect(_ context.Context, key string, o configsync.Object) error {
	doc, err := toJSON([]byte(o.Data[key]))
	if err != nil || o.UID == "" {
		return nil
	}
	var problems []string
	for _, name := range pathFields {
		if path, ok := textAt(doc, strings.Split(name, ".")...); ok && path != "" && !filepath.IsAbs(path) {
			problems = append(problems, name+" must be an absolute path")
		}
	}
	return joinProblems(problems)
}

func joinProblems(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

// checkShared checks what a config for several nodes must keep. own is the config itself, used what becomes of it on
// this node.
func (c codec) checkShared(own []byte, used *Config) error {
	alone, err := decodeConfig(own)
	if err != nil {
		return err
	}
	var problems []string
	need := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	const why = " must not be set in a config that nodes share: it belongs to one node, as a flag of its kubelet"
	need(alone.ProviderID == "", "providerID"+why)
	need(alone.PodCIDR == "", "podCIDR"+why)
	_, _, served := used.Healthz()
	need(served || !c.o.NeedsHealthz, "healthzPort must not be 0: the node's agent asks there whether the kubelet is well")
	return joinProblems(problems)
}

// textAt returns the text at a path of names; ok is false if there is no text.
func textAt(doc []byte, names ...string) (text string, ok bool) {
	for _, name := range names {
		fields, err := fieldsOf(doc)
		if err != nil {
			return "", false
		}
		doc = fields[name]
	}
	return text, json.Unmarshal(doc, &text) == nil
}
