// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/lkg"
)

// maxAck is the most that is read of the file.
const maxAck = 4 << 10

// ack has a config on trial wait for a file that holds its UID or its digest, and nothing else but white space; nil where no file is named.
func ack(s *settings.Run) *configsync.Ack {
	if s.AckFile == "" {
		return nil
	}
	return &configsync.Ack{Deadline: s.AckDeadline, Given: func(_ context.Context, r lkg.Ref) (bool, error) {
		word, err := wordIn(s.AckFile)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil && word != "" && (word == r.UID || word == r.Digest), err
	}}
}

// wordIn reads a regular file: another would have to be waited for.
func wordIn(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("the file of the acknowledgement is not a regular one")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxAck))
	return strings.TrimSpace(string(raw)), errors.Join(err, f.Close())
}
