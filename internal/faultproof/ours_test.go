// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"github.com/belayproject/belay/checkpoint"
)

// ours is the store that is to be proved.
func ours() subject {
	return subject{
		name: "checkpoint", deletes: true,
		prepare: func(string) error { return nil },
		open:    func(dir string) (keeper, error) { return openOurs(dir) },
	}
}

func options() checkpoint.Options {
	return checkpoint.Options{MachineID: "test machine", Writer: "faultproof", Ballast: 64 << 10}
}

type ourKeeper struct {
	store  *checkpoint.Store
	mu     sync.Mutex
	damage []error
}

func openOurs(dir string) (*ourKeeper, error) {
	k := &ourKeeper{}
	o := options()
	o.OnDamage = func(d checkpoint.Damage) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.damage = append(k.damage, &d)
	}
	store, err := checkpoint.Open(dir, o)
	k.store = store
	return k, err
}

func (k *ourKeeper) put(ctx context.Context, stream string, v value) error {
	if v == 0 {
		return k.store.Delete(ctx, stream)
	}
	return k.store.Put(ctx, stream, payload(stream, v))
}

func (k *ourKeeper) look(stream string) (value, uint64, error) {
	rec, err := k.store.Read(context.Background(), stream)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	if len(rec.Damage) > 0 {
		return 0, 0, fmt.Errorf("damaged: %v", rec.Damage)
	}
	v, err := valueOf(stream, rec.Payload)
	return v, rec.Generation, err
}

func (k *ourKeeper) close() error { return k.store.Close() }

// wounds gives what no crash alone may cause, E6, and what Open must have removed, E7.
func (k *ourKeeper) wounds(dir string) (broken []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.damage {
		broken = append(broken, fmt.Sprintf("a crash alone made damage: %v", d))
	}
	if !k.store.Durable() {
		broken = append(broken, "Durable is false")
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(path), ".tmp-") {
			broken = append(broken, fmt.Sprintf("a temporary file is left: %s", path))
		}
		return err
	})
	if err != nil {
		broken = append(broken, err.Error())
	}
	return broken
}

// inspect opens what a crash left, judges it, and judges it again after another Open, E5. The keeper stays open.
func inspect(s subject, dir string, l *ledger) (keeper, []string) {
	var broken []string
	for again := false; ; again = true {
		k, err := s.open(dir)
		if err != nil {
			return nil, append(broken, fmt.Sprintf("opening: %v", err))
		}
		broken = append(broken, l.judge(k)...)
		our, ok := k.(*ourKeeper)
		if ok {
			broken = append(broken, our.wounds(dir)...)
		}
		if !ok || again {
			return k, broken
		}
		if err := k.close(); err != nil {
			return nil, append(broken, fmt.Sprintf("closing: %v", err))
		}
	}
}
