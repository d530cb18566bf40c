// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package belay

import "github.com/belayproject/belay/internal/option"

// An OptionError is the error of a constructor or method of this library whose required arguments are missing. It names
// all of them at once: Call is the function, such as "drain.New"; Missing are the arguments
// and fields that are required and nil or empty, such as "Options.Cache"; Problems are sentences, each with what would
// be right. Ask for it with [errors.As]. Where a package has a
// sentinel error for it, as drain.ErrOption, errors.Is finds that as well.
type OptionError = option.Error
