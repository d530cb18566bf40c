// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/belayproject/belay/lkg"
)

const (
	// Stream is the record of the Store that holds the answers.
	Stream = "proofs"
	// maxAnswers is how many answers are kept. The oldest are dropped.
	maxAnswers = 64
	// format is that of the record. What is of another one is not read: to ask again costs a run.
	format = 1
)

// A subject is what an answer is about.
type subject struct {
	Version string `json:"version"`
	Setup   string `json:"setup"`   // of the program, see Options.setup
	Digest  string `json:"digest"`  // of the object
	Key     string `json:"key"`     // of the entry
	Payload string `json:"payload"` // SHA-256 of what the program got
}

// A verdict is an answer of a program.
type verdict string

const (
	accepted verdict = "Accepted"
	refused  verdict = "Refused"
)

// A result is an answer and what it is about.
type result struct {
	subject
	Verdict verdict       `json:"verdict"`
	Took    time.Duration `json:"tookNanoseconds"`
	Output  string        `json:"output,omitempty"`
	Sum     string        `json:"sum"` // of all else
}

// err is the answer.
func (r result) err() error {
	if r.Verdict == accepted {
		return nil
	}
	return &Error{Digest: r.Digest, Version: r.Version, Refused: true, Status: Refusal, Took: r.Took, Output: r.Output}
}

// sum authenticates all else in r.
func (r result) sum(secret []byte) string {
	h := hmac.New(sha256.New, secret)
	for _, s := range []string{r.Version, r.Setup, r.Digest, r.Key, r.Payload, string(r.Verdict), r.Took.String(), r.Output} {
		fmt.Fprintf(h, "%d %s\n", len(s), s) // a hash takes all
	}
	return hex.EncodeToString(h.Sum(nil))
}

// genuine reports whether r is an answer that was kept with this secret.
func (r result) genuine(secret []byte) bool {
	return hmac.Equal([]byte(r.sum(secret)), []byte(r.Sum)) && (r.Verdict == accepted || r.Verdict == refused)
}

// record is what is stored.
type record struct {
	Format  int      `json:"format"`
	Results []result `json:"results"`
}

// read gives the genuine answers on record. What can't be read is none: the program answers again.
func (p *Program) read(ctx context.Context, g lkg.Getter) []result {
	raw, err := g.Get(ctx, Stream)
	if err != nil {
		return nil
	}
	var r record
	if json.Unmarshal(raw, &r) != nil || r.Format != format {
		return nil
	}
	return kept(slices.DeleteFunc(r.Results, func(r result) bool { return !r.genuine(p.o.Secret) }))
}

// save puts on record what is not yet.
func (p *Program) save(ctx context.Context) error {
	if !p.unsaved {
		return nil
	}
	raw, err := json.Marshal(record{format, p.results})
	if err != nil {
		return err
	}
	if err := p.o.Store.Put(ctx, Stream, raw); err != nil {
		return err
	}
	p.unsaved = false
	return nil
}

// find gives the newest answer about a subject.
func find(all []result, s subject) (result, bool) {
	for _, r := range slices.Backward(all) {
		if r.subject == s {
			return r, true
		}
	}
	return result{}, false
}

// kept is the newest of all.
func kept(all []result) []result { return all[max(0, len(all)-maxAnswers):] }
