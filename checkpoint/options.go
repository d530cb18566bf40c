// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Defaults of [Options], in bytes where not said otherwise.
const (
	defaultGenerations = 3        // kept of each stream
	defaultMaxPayload  = 4 << 20  // of one record
	defaultMaxStore    = 64 << 20 // of all files together
	defaultBallast     = 1 << 20  // given back when the disk is full
)

const (
	// maxRecord bounds a payload whatever the options say.
	maxRecord = 1 << 30
	// asideStream and asideBytes bound what is kept as evidence: files a stream, and bytes in all.
	asideStream = 3
	asideBytes  = 16 << 20

	machineDigits  = 32
	machineFile    = "/etc/machine-id"
	writerMax      = 64
	minGenerations = 2
)

// Options are what a Store may be told. The zero value is the safe and usual choice.
type Options struct {
	// MachineID is any text that tells this machine from its clones. A digest of it is in each record, and a record with
	// another one is foreign. Empty = the content of /etc/machine-id. Where that is not there either, records carry no
	// machine, and none is foreign for it; nor is a record that carries none.
	MachineID string
	// Writer names the version of the program in each record, for people: up to 64 letters, digits and any of ".+_-".
	Writer string
	// Generations is how many records of a stream are kept, at least 2; 0 = 3.
	Generations int
	// MaxPayload is the largest payload that Put takes, in bytes; 0 = 4 MiB. It does not bound reading.
	MaxPayload int64
	// MaxStore bounds all files of the store together, in bytes; 0 = 64 MiB. A Put that would go above it returns ErrFull,
	// after everything below the two newest verified generations of each stream was dropped. The marks that keep the
	// numbers of deleted streams are not counted: they are empty, but for one that a crash left in the middle of a Delete.
	MaxStore int64
	// Ballast is how many bytes are set aside in a file that is given back when the disk is full, so that a pending record
	// still fits; 0 = 1 MiB, below 0 = none. It comes back by itself when there is room again.
	Ballast int64
	// OnDamage, if set, is told of each damaged, foreign, untrusted or unreadable file, once a Store. It is called by the
	// goroutine that found it, inside Open or the call, without a lock held; it must not call the Store.
	OnDamage func(Damage)
}

// complete fills in the defaults and refuses what can not be meant.
func (o Options) complete() (Options, error) {
	if o.Generations == 0 {
		o.Generations = defaultGenerations
	}
	if o.MaxPayload == 0 {
		o.MaxPayload = defaultMaxPayload
	}
	if o.MaxStore == 0 {
		o.MaxStore = defaultMaxStore
	}
	if o.Ballast == 0 {
		o.Ballast = defaultBallast
	}
	if o.OnDamage == nil {
		o.OnDamage = func(Damage) {}
	}
	if o.Writer == "" {
		o.Writer = none
	}
	return o, o.check()
}

func (o Options) check() error {
	switch {
	case o.Generations < minGenerations:
		return fmt.Errorf("option Generations is %d: must be at least %d", o.Generations, minGenerations)
	case o.MaxPayload < 0 || o.MaxPayload > maxRecord:
		return fmt.Errorf("option MaxPayload is %d: must be between 1 and %d", o.MaxPayload, maxRecord)
	case o.MaxStore < 0:
		return fmt.Errorf("option MaxStore is %d: must not be below 0", o.MaxStore)
	}
	if err := checkWriter(o.Writer); err != nil {
		return fmt.Errorf("option Writer: %w", err)
	}
	return nil
}

func checkWriter(w string) error {
	if w == "" || len(w) > writerMax {
		return fmt.Errorf("writer has %d characters: must have 1 to %d", len(w), writerMax)
	}
	for i := range len(w) {
		c := w[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(".+_-", c) >= 0) {
			return errors.New("writer must have letters, digits, and any of .+_- only")
		}
	}
	return nil
}

// machine gives what the records of this machine carry. The id itself is not written: systemd asks not to expose it.
func (o Options) machine() string { return o.machineOf(machineFile) }

func (o Options) machineOf(file string) string {
	id := o.MachineID
	if id == "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return none
		}
		id = strings.TrimSpace(string(content))
		if id == "" || id == "uninitialized" {
			return none
		}
	}
	sum := sha256.Sum256([]byte("belay checkpoint machine\n" + id))
	return hex.EncodeToString(sum[:])[:machineDigits]
}
