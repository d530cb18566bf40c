// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/machine/provider/local"
)

// A record that is read is the same when it was written and is read again. One of another token is never taken.
func FuzzRecord(f *testing.F) {
	const rest = `"owner":{"cluster":"c"},"config":{"command":["a"],"disks":["d"],"namespaces":"Auto","stopSignal":"SIGTERM","graceSeconds":1}`
	f.Add([]byte(`{"format":1,"token":"a-1","phase":"Running","process":{"pid":7,"start":9,"boot":"b"},` + rest + `}`))
	f.Add([]byte(`{"format":1,"token":"a-1","phase":"Halting","then":"Retained",` + rest + `}`))
	f.Add([]byte(`{"format":1,"token":"a-1","phase":"Adopting","from":"../x",` + rest + `}`))
	f.Add([]byte(`{"format":2,"token":"a-1","phase":"Running",` + rest + `}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		written, err := local.ParseRecord(data, "a-1")
		if err != nil {
			return
		}
		again, err := local.ParseRecord(written, "a-1")
		if err != nil || !bytes.Equal(written, again) {
			t.Errorf("got %q, %v, want %q again", again, err, written)
		}
		if _, err := local.ParseRecord(written, "a-2"); err == nil {
			t.Error("it was taken for that of another token")
		}
		if bytes.Contains(written, []byte(`"from": "../`)) || bytes.Contains(written, []byte(`"to": "../`)) {
			t.Errorf("a token that is a path was taken: %q", written)
		}
	})
}

// A record of this version is read, and no other.
func TestRecordOfAnotherVersion(t *testing.T) {
	const good = `{"format":1,"token":"a-1","phase":"Running","config":{"command":["a"],"namespaces":"Auto","stopSignal":"SIGTERM","graceSeconds":1}}`
	if _, err := local.ParseRecord([]byte(good), "a-1"); err != nil {
		t.Fatal(err)
	}
	for old, bad := range map[string]string{
		`"format":1`: `"format":2`, `"token":"a-1"`: `"token":"b-1"`, `"Running"`: `"Flying"`, `"phase":"Running"`: `"phase":"Halting"`,
		`"phase":`: `"to":"../b-1","phase":`, `"phase":"Running"}`: `"phase":"Running"`, `"graceSeconds":1`: `"graceSeconds":0`,
	} {
		text := strings.Replace(good, old, bad, 1)
		if old == `"phase":"Running"}` {
			text = good[:len(good)-1]
		}
		if _, err := local.ParseRecord([]byte(text), "a-1"); err == nil || !strings.Contains(err.Error(), `"a-1"`) {
			t.Errorf("%s: got %v, want an error with its name", text, err)
		}
	}
}

// What the kernel says of a process is read whatever its name is.
func FuzzStat(f *testing.F) {
	f.Add("a", 5, uint64(7))
	f.Add("a) R 1 1 1 (", 5, uint64(7))
	f.Add("", 1<<20, uint64(1)<<63)
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	if state, session, start, err := local.ParseStat(own); err != nil || start == 0 || session < 0 || state != 'R' && state != 'S' {
		f.Fatalf("own: got %c, %d, %d, %v", state, session, start, err)
	}
	f.Fuzz(func(t *testing.T, name string, session int, start uint64) {
		line := stat(strings.ToValidUTF8(strings.ReplaceAll(name, "\n", ""), ""), session, start)
		state, gotSession, gotStart, err := local.ParseStat([]byte(line))
		if err != nil || state != 'S' || gotSession != session || gotStart != start {
			t.Errorf("%q: got %c, %d, %d, %v", line, state, gotSession, gotStart, err)
		}
		if _, _, _, err := local.ParseStat([]byte(name)); err == nil && !strings.Contains(name, " ") {
			t.Errorf("%q was read", name)
		}
	})
}

// The mark is that of the whole token and the whole directory.
func FuzzMarked(f *testing.F) {
	f.Add("a-1", "a-1", "/x")
	f.Add("a-11", "a-1", "/x")
	f.Add("xa-1", "a-1", "")
	f.Fuzz(func(t *testing.T, has, asked, dir string) {
		if strings.ContainsRune(has+asked+dir, 0) {
			return
		}
		environ := []byte("A=1\x00BELAY_MACHINE=" + has + "\x00BELAY_MACHINE_DIR=" + dir + "/" + has + "\x00Z=\x00")
		if got := local.Marked(environ, asked, dir+"/"+asked); got != (has == asked) {
			t.Errorf("%q, asked for %q: got %t", environ, asked, got)
		}
		if local.Marked(environ[2:], has, dir+"/"+has+"/") {
			t.Error("it was taken for one in another directory")
		}
	})
}

// Mounts in a directory are found, whatever is in their names.
func FuzzMounts(f *testing.F) {
	f.Add("a b", "/root dir")
	f.Add(`a\040b`, "/r")
	escape := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`)
	f.Fuzz(func(t *testing.T, name, dir string) {
		if name == "" || strings.ContainsAny(name+dir, "\v\f\r\u0085\u00a0") || strings.ToValidUTF8(name+dir, "") != name+dir {
			return // the kernel writes bytes, and no test needs all of them
		}
		at := dir + "/" + name
		info := "22 1 0:21 / / rw - ext4 /dev/x rw\n36 22 0:32 / " + escape.Replace(at) + " rw - tmpfs none rw\n37 22 0:33 / /else" +
			escape.Replace(at) + " rw - tmpfs none rw\n"
		if len(strings.Fields(escape.Replace(at))) != 1 {
			return
		}
		if got := local.ParseMounts([]byte(info), dir); !slices.Contains(got, at) || dir != "" && len(got) != 1 && !strings.HasPrefix("/else"+at, dir+"/") {
			t.Errorf("got %q, want %q", got, at)
		}
	})
}
