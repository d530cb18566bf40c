// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/belayproject/belay/checkpoint"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: checkpoint DIRECTORY")
		os.Exit(2)
	}
	n, err := countRun(context.Background(), os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("run", n)
}

// countRun adds one to the record and returns it. The directory is locked meanwhile.
func countRun(ctx context.Context, dir string) (n int, err error) {
	store, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	text, err := store.Get(ctx, "runs")
	switch {
	case errors.Is(err, fs.ErrNotExist): // the first run
	case err != nil:
		return 0, err
	default:
		if n, err = strconv.Atoi(string(text)); err != nil {
			return 0, fmt.Errorf("the record holds no number: %w", err)
		}
	}
	n++
	return n, store.Put(ctx, "runs", []byte(strconv.Itoa(n))) // durable once it returns nil
}
