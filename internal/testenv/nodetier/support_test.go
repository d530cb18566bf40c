// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodetier

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestSupportedNamesWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Supported()
	if !errors.Is(err, ErrUnsupported) {
		t.Fatalf("without any program: error %v, want ErrUnsupported", err)
	}
	for _, want := range []string{`"containerd"`, `"runc"`, `"ctr"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the reason %q does not name %s", err, want)
		}
	}
}

// TestImageRefersToItsBlobs checks what a runtime would refuse: each blob has the digest that is its name, and the
// layer holds the program, executable.
func TestImageRefersToItsBlobs(t *testing.T) {
	image, err := buildImage("belay.test/x:1", "prog", []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, image)
	for name, data := range files {
		digest, ok := strings.CutPrefix(name, "blobs/sha256/")
		if sum := sha256.Sum256(data); ok && hex.EncodeToString(sum[:]) != digest {
			t.Errorf("blob %s has the digest %x", name, sum)
		}
	}
	var index struct{ Manifests []descriptor }
	decode(t, files["index.json"], &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Annotations["io.containerd.image.name"] != "belay.test/x:1" {
		t.Fatalf("index names %+v, want one manifest with the image's name", index)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(t, files[blobPath(index.Manifests[0])], &manifest)
	var config struct{ Config struct{ Entrypoint []string } }
	decode(t, files[blobPath(manifest.Config)], &config)
	if len(config.Config.Entrypoint) != 1 || config.Config.Entrypoint[0] != "/prog" {
		t.Errorf("entry point is %q, want /prog", config.Config.Entrypoint)
	}
	if len(manifest.Layers) != 1 {
		t.Fatalf("manifest has layers %+v, want one", manifest.Layers)
	}
	layer := files[blobPath(manifest.Layers[0])]
	if int64(len(layer)) != manifest.Layers[0].Size || string(untar(t, layer)["prog"]) != "content" {
		t.Errorf("the layer has %d bytes and holds %q", len(layer), untar(t, layer))
	}
}

func blobPath(d descriptor) string { return "blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:") }

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("decoding %q: %v", data, err)
	}
}

func untar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	reader := tar.NewReader(bytes.NewReader(data))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}
