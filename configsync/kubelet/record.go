// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/filesum"
	"github.com/belayproject/belay/lkg"
)

const (
	// proofStream is the record that holds the answers.
	proofStream = "kubelet-proofs"
	// maxResults is how many answers are kept. The oldest are dropped.
	maxResults = 64
	// proofFormat is that of the record. A record of another format is not read: to ask again costs a run.
	proofFormat = 1
	// maxTries is how often the kubelet is asked about a document without an answer. To ask on would keep a node
	// from a config that works: what is left is to try it.
	maxTries = 3
)

// A result is an answer of the kubelet.
type result struct {
	ID      string `json:"id"` // of the subject
	Refused bool   `json:"refused,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Tries counts the judgements that have found nothing out; then Reason says why the last one has not.
	Tries int `json:"tries,omitempty"`
}

// isOpen reports whether the kubelet is to be asked again.
func (r result) isOpen() bool { return r.Tries > 0 && r.Tries < maxTries }

// err is nil for a config that the kubelet accepts, and for one that it was asked about often enough.
func (r result) err() error {
	switch {
	case r.Refused:
		return fmt.Errorf("the kubelet refuses it: %s", r.Reason)
	case r.isOpen():
		return undecided(errors.New(r.Reason))
	}
	return nil
}

type proofRecord struct {
	Format  int      `json:"format"`
	Results []result `json:"results"`
}

// readResults returns the answers on record. What cannot be read is none: the kubelet is asked again.
func readResults(ctx context.Context, g lkg.Getter) []result {
	raw, err := g.Get(ctx, proofStream)
	if err != nil {
		return nil
	}
	var r proofRecord
	if json.Unmarshal(raw, &r) != nil || r.Format != proofFormat {
		return nil
	}
	return keepNewest(r.Results)
}

func saveResults(ctx context.Context, s configsync.Store, all []result) error {
	raw, err := json.Marshal(proofRecord{proofFormat, all})
	if err != nil {
		return err
	}
	return s.Put(ctx, proofStream, raw)
}

func keepNewest(all []result) []result { return all[max(0, len(all)-maxResults):] }

// keepResult puts a result in the place of an older one of its subject, as the newest.
func keepResult(all []result, r result) []result {
	kept := make([]result, 0, len(all)+1)
	for _, old := range all {
		if old.ID != r.ID {
			kept = append(kept, old)
		}
	}
	return keepNewest(append(kept, r))
}

func findResult(all []result, id string) (result, bool) {
	for _, r := range all {
		if r.ID == id {
			return r, true
		}
	}
	return result{}, false
}

// identify names a subject by all that an answer depends on.
func (s *subject) identify(c *filesum.Cache) error {
	sum, err := digestOfProgram(c, s.program)
	if err != nil {
		return err
	}
	s.binary = sum
	h := sha256.New()
	isolated := canIsolate() == nil
	for _, part := range append([]string{sum, string(s.payload), string(s.document), fmt.Sprint(isolated)}, s.args...) {
		fmt.Fprintf(h, "%d %s\n", len(part), part) // a hash takes all
	}
	s.id = hex.EncodeToString(h.Sum(nil))
	return nil
}

// digestOfProgram returns the digest of a file that can be executed.
func digestOfProgram(c *filesum.Cache, path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("%q is no program", path)
	}
	return c.DigestOf(path)
}
