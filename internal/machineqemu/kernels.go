// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machineqemu

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Kernel is one of Debian in the user's cache.
type Kernel struct {
	// Release is what uname says.
	Release string
	// Image is the path of the kernel itself.
	Image string
	// Modules are the paths of those that a machine needs, in the order in which they are loaded.
	Modules []string
}

// Names in the directory of a kernel, which is named by its release.
const (
	imageFile = "vmlinuz"
	orderFile = "order"
)

// cacheDir is where kernels are kept between runs.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w", err)
	}
	return filepath.Join(dir, "belay", "kernels"), nil
}

// Kernels returns those in the cache, the oldest first.
func Kernels() ([]Kernel, error) {
	dir, err := cacheDir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for kernels: %w", err)
	}
	var all []Kernel
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue // not whole
		}
		k, err := readKernel(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b Kernel) int { return compareReleases(a.Release, b.Release) })
	return all, nil
}

func readKernel(dir string) (Kernel, error) {
	order, err := os.ReadFile(filepath.Join(dir, orderFile))
	if err != nil {
		return Kernel{}, fmt.Errorf("kernel %q in the cache: %w", filepath.Base(dir), err)
	}
	k := Kernel{Release: filepath.Base(dir), Image: filepath.Join(dir, imageFile)}
	for _, name := range strings.Fields(string(order)) {
		k.Modules = append(k.Modules, filepath.Join(dir, name))
	}
	return k, nil
}

// compareReleases compares numbers as numbers, as "6.1.0-9" and "6.1.0-10".
func compareReleases(a, b string) int {
	for a != "" && b != "" {
		x, restA := chunk(a)
		y, restB := chunk(b)
		m, errX := strconv.Atoi(x)
		n, errY := strconv.Atoi(y)
		c := cmp.Compare(x, y)
		if errX == nil && errY == nil {
			c = cmp.Compare(m, n)
		}
		if c != 0 {
			return c
		}
		a, b = restA, restB
	}
	return cmp.Compare(len(a), len(b))
}

// chunk cuts off what is all digits, or all something else.
func chunk(s string) (first, rest string) {
	digit := func(r byte) bool { return r >= '0' && r <= '9' }
	n := 1
	for n < len(s) && digit(s[n]) == digit(s[0]) {
		n++
	}
	return s[:n], s[n:]
}
