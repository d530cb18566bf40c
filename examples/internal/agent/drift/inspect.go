// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
)

// maxFile is the most that is read of a file. A longer one is no config.
const maxFile = 16 << 20

// inspect returns the digest of what is at path, or a word for what is there instead. It opens regular files only, so that it waits for nobody.
func inspect(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return wordFor(err)
	}
	if !info.Mode().IsRegular() {
		return notRegular
	}
	f, err := os.Open(path)
	if err != nil {
		return wordFor(err)
	}
	sum := sha256.New()
	_, err = io.Copy(sum, io.LimitReader(f, maxFile))
	if cerr := f.Close(); err != nil || cerr != nil {
		return unreadable
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}
