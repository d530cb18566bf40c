// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testproc

import (
	"bytes"
	"sync"
)

// A Buffer keeps what a process writes, for several goroutines. The zero value is empty.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
