// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/strictjson"
	"github.com/belayproject/belay/lkg"
)

// The entries of an object that carry the limits of its trial, beside the config itself, so that both roll out
// together. All are optional. Durations are Go duration strings, such as "10m" or "1h30m", as metav1.Duration takes
// them.
const (
	KeyTrialDuration      = "configTrialDuration" // healthy time before the config becomes the last known good one
	KeyCrashLoopThreshold = "crashLoopThreshold"  // unexplained restarts tolerated during the trial, "0" to "10"
	KeyMinHealthyRun      = "minHealthyRun"       // time without a restart that a promotion needs
	KeyProbeDeadline      = "probeDeadline"       // longest time for which a probe may fail without a break
)

// A DecodeError says why an entry can't be decoded. It holds no value of the entry.
type DecodeError struct {
	// Key is the entry.
	Key string
	// Err is what is wrong with it.
	Err error
}

// Error names the entry.
func (e *DecodeError) Error() string { return fmt.Sprintf("decoding %q: %v", clipped(e.Key), e.Err) }

// Unwrap gives what is wrong.
func (e *DecodeError) Unwrap() error { return e.Err }

// YAMLOptions say what [YAML] takes.
type YAMLOptions struct {
	// APIVersion and Kind, where set, must be those of the document.
	APIVersion, Kind string
	// Limits of the document.
	Limits GateLimits
}

// YAML returns a Codec for documents in YAML or JSON: [Gate], then apiVersion and kind, then [DecodeStrict], and the
// limits of the trial from the entries named above. T must be a struct with fields for all that a document may hold,
// apiVersion and kind included where there are any. Errors are [*DecodeError]s.
func YAML[T any](o YAMLOptions) Codec[T] { return yamlCodec[T]{o} }

type yamlCodec[T any] struct{ o YAMLOptions }

// Decode implements Codec.
func (c yamlCodec[T]) Decode(key string, o Object) (T, lkg.Limits, error) {
	var cfg T
	text, ok := o.Data[key]
	if !ok || text == "" {
		return cfg, lkg.Limits{}, &DecodeError{key, fmt.Errorf("the entry is missing or empty; it must hold the config")}
	}
	limits, err := LimitsOf(o)
	if err != nil {
		return cfg, lkg.Limits{}, err
	}
	doc, err := Gate([]byte(text), c.o.Limits)
	if err != nil {
		return cfg, lkg.Limits{}, &DecodeError{key, err}
	}
	if err := c.checkType(doc); err != nil {
		return cfg, lkg.Limits{}, &DecodeError{key, err}
	}
	if err := DecodeStrict(doc, &cfg); err != nil {
		var none T
		return none, lkg.Limits{}, &DecodeError{key, err}
	}
	return cfg, limits, nil
}

// checkType refuses a document of another type before its fields are compared.
func (c yamlCodec[T]) checkType(doc []byte) error {
	if c.o.APIVersion == "" && c.o.Kind == "" {
		return nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(doc, &fields); err != nil {
		return fmt.Errorf("document must be a map")
	}
	for _, f := range []struct{ name, want string }{{"apiVersion", c.o.APIVersion}, {"kind", c.o.Kind}} {
		var got string
		if raw, ok := fields[f.name]; ok && json.Unmarshal(raw, &got) != nil {
			return fmt.Errorf("field %q must be a string", f.name)
		}
		if f.want != "" && got != f.want {
			return fmt.Errorf("field %q must be %q", f.name, f.want)
		}
	}
	return nil
}

// LimitsOf reads the limits that travel with a config. What the object doesn't say is zero. Errors are [*DecodeError]s.
func LimitsOf(o Object) (lkg.Limits, error) {
	var l lkg.Limits
	for _, d := range []struct {
		key  string
		into *time.Duration
	}{{KeyTrialDuration, &l.Trial}, {KeyMinHealthyRun, &l.MinHealthyRun}, {KeyProbeDeadline, &l.ProbeDeadline}} {
		text, ok := o.Data[d.key]
		if !ok {
			continue
		}
		v, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || v <= 0 {
			return lkg.Limits{}, &DecodeError{d.key, fmt.Errorf("must be a positive duration such as %q", "10m")}
		}
		*d.into = v
	}
	if text, ok := o.Data[KeyCrashLoopThreshold]; ok {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 0 || n > lkg.MaxCrashLoopThreshold {
			return lkg.Limits{}, &DecodeError{KeyCrashLoopThreshold, fmt.Errorf("must be a whole number from 0 to %d", lkg.MaxCrashLoopThreshold)}
		}
		l.CrashLoopThreshold = n
	}
	return l, nil
}

// DecodeStrict decodes one JSON document into the struct that into points to. A field that the struct doesn't have is
// an error, and so is one whose name differs in case, or that stands twice; encoding/json takes both. Types that decode
// themselves, such as metav1.Duration, judge their own values. The error names the field's path, never a value. After
// an error what into points to is undefined.
func DecodeStrict(doc []byte, into any) error {
	if err := option.CheckRequired("configsync.DecodeStrict", "into", into, "must be a pointer to a struct"); err != nil {
		return err
	}
	return strictjson.Decode(doc, into)
}
