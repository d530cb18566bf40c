// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/belayproject/belay/checkpoint/checkpointtest"
)

// files is what an agent's own store needs of a file system. In production it is package os.
type files interface {
	OpenFile(name string, flag int, perm fs.FileMode) (file, error)
	Rename(from, to string) error
}

type file interface {
	Write(p []byte) (int, error)
	Sync() error
	Close() error
}

// onDisk has a Disk return the interface.
type onDisk struct{ *checkpointtest.Disk }

func (d onDisk) OpenFile(name string, flag int, perm fs.FileMode) (file, error) {
	return d.Disk.OpenFile(name, flag, perm)
}

// save is the store, as many write it: the content is durable before it gets its name. The name never is.
func save(fs files, name, content string) error {
	f, err := fs.OpenFile(name+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(content))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return fs.Rename(name+".tmp", name)
}

// ExampleCrash finds what is wrong with a store that does not fsync the directory.
func ExampleCrash() {
	crash := checkpointtest.Crash{
		Work: func(d *checkpointtest.Disk) error {
			for _, content := range []string{"v1", "v2"} {
				if err := save(onDisk{d}, "/state", content); err != nil {
					return err
				}
				d.Note(content) // saved: whoever waited for that acts on it now
			}
			return nil
		},
		Check: func(d *checkpointtest.Disk, noted []any) error {
			if len(noted) == 0 {
				return nil
			}
			last := noted[len(noted)-1]
			f, err := d.OpenFile("/state", os.O_RDONLY, 0)
			if err != nil {
				return fmt.Errorf("%v was saved, and: %w", last, err)
			}
			content := make([]byte, 2)
			if _, err := f.ReadAt(content, 0); err != nil {
				return err
			}
			if last == "v2" && string(content) != "v2" {
				return fmt.Errorf("v2 was saved, and %s is there", content)
			}
			return f.Close()
		},
	}
	_, err := crash.Explore()
	fmt.Println(err)
	// Output:
	// after a crash: v1 was saved, and: open /state: no such file or directory
	// the calls that changed something, up to the crash:
	//   create state.tmp
	//   write 2 bytes at 0 of file 2
	//   sync file 2
	//   rename state.tmp state
	//   note v1
	// lost: create state.tmp
	// lost: rename state.tmp state
	// on the disk:
	// replay it with the same Crash and Replay("4.0")
}
