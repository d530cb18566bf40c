// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/belayproject/belay/checkpoint/checkpointtest"
)

// protocol is a way to write a value under a name, as a sequence of calls.
type protocol struct {
	name string
	safe bool
	save func(d *checkpointtest.Disk, n int, content []byte) error
}

const dir = "/state"

// protocols are those in use, and some that look as good. Of the libraries only the order of the calls is here.
func protocols() []protocol {
	return []protocol{
		{"write, fsync, rename, fsync the directory", true, func(d *checkpointtest.Disk, _ int, b []byte) error {
			return errors.Join(write(d, "tmp", b, true), d.Rename(dir+"/tmp", dir+"/value"), syncDir(d))
		}},
		{"write, fsync, rename (google/renameio, natefinch/atomic)", false, func(d *checkpointtest.Disk, _ int, b []byte) error {
			return errors.Join(write(d, "tmp", b, true), d.Rename(dir+"/tmp", dir+"/value"))
		}},
		{"write, rename, fsync the directory", false, func(d *checkpointtest.Disk, _ int, b []byte) error {
			return errors.Join(write(d, "tmp", b, false), d.Rename(dir+"/tmp", dir+"/value"), syncDir(d))
		}},
		{"write in place, fsync", false, func(d *checkpointtest.Disk, _ int, b []byte) error { return write(d, "value", b, true) }},
		{"numbered, fsync both, then remove the last but one", true, func(d *checkpointtest.Disk, n int, b []byte) error {
			err := errors.Join(write(d, "tmp", b, true), d.Rename(dir+"/tmp", number(n)), syncDir(d))
			_ = d.Remove(number(n - 2))
			return err
		}},
		{"numbered, remove the last before the directory is fsynced", false, func(d *checkpointtest.Disk, n int, b []byte) error {
			err := errors.Join(write(d, "tmp", b, true), d.Rename(dir+"/tmp", number(n)))
			_ = d.Remove(number(n - 1))
			return errors.Join(err, syncDir(d))
		}},
	}
}

func number(n int) string { return fmt.Sprintf("%s/value.%03d", dir, n) }

func write(d *checkpointtest.Disk, name string, b []byte, sync bool) error {
	f, err := d.OpenFile(dir+"/"+name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return err
	}
	if sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(d *checkpointtest.Disk) error {
	f, err := d.OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// newest reads the value, or the one with the highest number.
func newest(d *checkpointtest.Disk) (string, error) {
	entries, err := d.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(entries) {
		if e.Name() == "tmp" {
			continue
		}
		f, err := d.OpenFile(dir+"/"+e.Name(), os.O_RDONLY, 0)
		if err != nil {
			return "", err
		}
		b, err := io.ReadAll(f)
		return string(b), err
	}
	return "", nil
}

// The harness finds the losses of the protocols that have some, and none in those that have none.
func TestProtocolsAreToldApart(t *testing.T) {
	for _, p := range protocols() {
		t.Run(p.name, func(t *testing.T) {
			lost, checked := 0, 0
			report, err := checkpointtest.Crash{
				Work: func(d *checkpointtest.Disk) error {
					if err := d.Mkdir(dir, 0o700); err != nil {
						return err
					}
					d.Settle()
					for n := range 20 {
						content := fmt.Sprintf("value number %03d", n)
						if err := p.save(d, n, []byte(content)); err != nil {
							return err
						}
						d.Note(content)
					}
					return nil
				},
				Check: func(d *checkpointtest.Disk, noted []any) error {
					checked++
					got, err := newest(d)
					last := ""
					if len(noted) > 0 {
						last = noted[len(noted)-1].(string)
					}
					if next := fmt.Sprintf("value number %03d", len(noted)); got != last && got != next {
						lost++
					}
					return err
				},
			}.Explore()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("fault D1 protocol=%q states=%d different=%d lost=%d", p.name, report.States, checked, lost)
			if p.safe != (lost == 0) {
				t.Errorf("lost in %d of %d states, want safe = %t", lost, checked, p.safe)
			}
		})
	}
}
