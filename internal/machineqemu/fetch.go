// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machineqemu

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wanted are the modules that a machine needs, as far as they are not built into its kernel.
var wanted = [...]string{"virtio_pci", "virtio_blk", "virtio_net", "ext4"}

// packageName matches Debian's packages of a kernel for virtual machines: the small ones.
var packageName = regexp.MustCompile(`^linux-image-([0-9]\S*-cloud-amd64)$`)

// FetchKernels brings the oldest and the newest kernel for virtual machines that Debian's archive serves into the cache, unless there are two: nothing is
// installed. It needs apt-get and dpkg-deb, and no rights. progress gets a line for each kernel.
func FetchKernels(ctx context.Context, progress io.Writer) error {
	have, err := Kernels()
	if err != nil || len(have) >= 2 {
		return err
	}
	served, err := served(ctx)
	if err != nil {
		return err
	}
	dir, err := cacheDir()
	if err != nil {
		return err
	}
	oldest, err := fetchFirst(ctx, progress, dir, served)
	if err != nil {
		return err
	}
	slices.Reverse(served)
	_, err = fetchFirst(ctx, progress, dir, slices.DeleteFunc(served, func(release string) bool { return release == oldest }))
	return err
}

// fetchFirst fetches the first of some kernels that can be had: the archive may know names of packages that it has no more.
func fetchFirst(ctx context.Context, progress io.Writer, dir string, releases []string) (string, error) {
	err := errors.New("the archive serves fewer than two kernels for virtual machines: is its list there, as after \"apt-get update\"?")
	for _, release := range releases {
		fmt.Fprintf(progress, "belay: fetching kernel %s\n", release)
		if err = fetch(ctx, dir, release); err == nil || ctx.Err() != nil {
			return release, err
		}
		err = fmt.Errorf("fetching kernel %q: %w", release, err)
	}
	return "", err
}

// served are the releases that can be had, the oldest first.
func served(ctx context.Context) ([]string, error) {
	out, err := output(ctx, "", "apt-cache", "pkgnames", "linux-image-")
	if err != nil {
		return nil, err
	}
	var all []string
	for _, name := range strings.Fields(string(out)) {
		if m := packageName.FindStringSubmatch(name); m != nil {
			all = append(all, m[1])
		}
	}
	slices.SortFunc(all, compareReleases)
	return slices.Compact(all), nil
}

// fetch has a kernel appear in the cache as a whole.
func fetch(ctx context.Context, cache, release string) error {
	final := filepath.Join(cache, release)
	if _, err := os.Stat(final); err == nil {
		return nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(cache, ".fetch-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // what stays is passed by
	if _, err := output(ctx, tmp, "apt-get", "download", "-qq", "linux-image-"+release); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("apt-get has left the packages %q (%w): want one", debs, err)
	}
	tree, kernel := filepath.Join(tmp, "tree"), filepath.Join(tmp, "kernel")
	if _, err := output(ctx, "", "dpkg-deb", "-x", debs[0], tree); err != nil {
		return err
	}
	if err := os.Mkdir(kernel, 0o755); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(tree, "boot", "vmlinuz-"+release), filepath.Join(kernel, imageFile)); err != nil {
		return err
	}
	if err := copyModules(ctx, tree, kernel); err != nil {
		return err
	}
	err = os.Rename(kernel, final)
	if errors.Is(err, fs.ErrExist) {
		return nil // somebody else has fetched it
	}
	return err
}

// copyModules copies the modules that a machine needs, and writes their order.
func copyModules(ctx context.Context, tree, kernel string) error {
	c := collector{ctx: ctx, files: map[string]string{}, to: kernel}
	err := filepath.WalkDir(filepath.Join(tree, "lib", "modules"), func(path string, _ fs.DirEntry, err error) error {
		if name, _, is := strings.Cut(filepath.Base(path), ".ko"); is {
			c.files[strings.ReplaceAll(name, "-", "_")] = path
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range wanted {
		if err := c.collect(name); err != nil {
			return fmt.Errorf("module %q: %w", name, err)
		}
	}
	return os.WriteFile(filepath.Join(kernel, orderFile), []byte(strings.Join(c.order, "\n")+"\n"), 0o644)
}

// A collector copies modules after what they depend on.
type collector struct {
	ctx   context.Context
	files map[string]string // by name; those that are built in have none
	to    string
	order []string
}

func (c *collector) collect(name string) error {
	path, file := c.files[name], name+".ko"
	if path == "" || slices.Contains(c.order, file) {
		return nil
	}
	data, err := c.read(path)
	if err != nil {
		return err
	}
	needs, err := dependencies(data)
	if err != nil {
		return err
	}
	for _, need := range needs {
		if err := c.collect(need); err != nil {
			return err
		}
	}
	c.order = append(c.order, file)
	return os.WriteFile(filepath.Join(c.to, file), data, 0o644)
}

func (c *collector) read(path string) ([]byte, error) {
	if filepath.Ext(path) == ".xz" {
		return output(c.ctx, "", "xz", "-dc", path)
	}
	return os.ReadFile(path)
}

// dependencies are what a module says that it needs: "depends=a,b" and "softdep=pre: c".
func dependencies(module []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, errors.New("it has no section .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	var all []string
	for field := range strings.SplitSeq(string(info), "\x00") {
		if list, is := strings.CutPrefix(field, "softdep=pre: "); is {
			list, _, _ = strings.Cut(list, "post:")
			all = append(all, strings.Fields(list)...)
		} else if list, is := strings.CutPrefix(field, "depends="); is && list != "" {
			all = append(all, strings.Split(list, ",")...)
		}
	}
	for i, name := range all {
		all[i] = strings.ReplaceAll(name, "-", "_")
	}
	return all, nil
}

// output runs a program and returns what it prints.
func output(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var complaint bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running %s: %w: %.400s", program, err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out, nil
}
