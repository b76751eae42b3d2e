// Files written by NumPy 1.24.2, in base64; each with the statement that wrote it, where a = np.arange(24).reshape(2, 3, 4) / 8 - 1.

/** The values of `a` in C order. */
export const aValues = Array.from({ length: 24 }, (_, i) => i / 8 - 1);

/** @type {Record<string, () => Uint8Array>} */
export const numpyFiles = {
  // np.save(f, a.astype("<f4"))
  float32: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPGY0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMsIDQpLCB9ICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAIC/AABgvwAAQL8AACC/AAAAvwAA' +
        'wL4AAIC+AAAAvgAAAAAAAAA+AACAPgAAwD4AAAA/AAAgPwAAQD8AAGA/AACAPwAAkD8AAKA/AACwPwAAwD8AANA/AADgPwAA8D8=',
    ),
  // np.save(f, a)
  float64: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPGY4JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMsIDQpLCB9ICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAAAAADwvwAAAAAAAOy/AAAAAAAA' +
        '6L8AAAAAAADkvwAAAAAAAOC/AAAAAAAA2L8AAAAAAADQvwAAAAAAAMC/AAAAAAAAAAAAAAAAAADAPwAAAAAAANA/AAAAAAAA2D8A' +
        'AAAAAADgPwAAAAAAAOQ/AAAAAAAA6D8AAAAAAADsPwAAAAAAAPA/AAAAAAAA8j8AAAAAAAD0PwAAAAAAAPY/AAAAAAAA+D8AAAAA' +
        'AAD6PwAAAAAAAPw/AAAAAAAA/j8=',
    ),
  // np.save(f, a.astype("<f2"))
  float16: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPGYyJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMsIDQpLCB9ICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAvAC7ALoAuQC4ALYAtACwAAAAMAA0' +
        'ADYAOAA5ADoAOwA8gDwAPYA9AD6APgA/gD8=',
    ),
  // np.save(f, a.astype(">f4"))
  float32BigEndian: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPmY0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMsIDQpLCB9ICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAq/gAAAv2AAAL9AAAC/IAAAvwAAAL7A' +
        'AAC+gAAAvgAAAAAAAAA+AAAAPoAAAD7AAAA/AAAAPyAAAD9AAAA/YAAAP4AAAD+QAAA/oAAAP7AAAD/AAAA/0AAAP+AAAD/wAAA=',
    ),
  // np.save(f, a.astype(">f8"))
  float64BigEndian: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPmY4JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMsIDQpLCB9ICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAq/8AAAAAAAAL/sAAAAAAAAv+gAAAAA' +
        'AAC/5AAAAAAAAL/gAAAAAAAAv9gAAAAAAAC/0AAAAAAAAL/AAAAAAAAAAAAAAAAAAAA/wAAAAAAAAD/QAAAAAAAAP9gAAAAAAAA/' +
        '4AAAAAAAAD/kAAAAAAAAP+gAAAAAAAA/7AAAAAAAAD/wAAAAAAAAP/IAAAAAAAA/9AAAAAAAAD/2AAAAAAAAP/gAAAAAAAA/+gAA' +
        'AAAAAD/8AAAAAAAAP/4AAAAAAAA=',
    ),
  // np.save(f, np.array([1, -2, 300], ">i2"))
  int16BigEndian: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPmkyJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDMsKSwgfSAgICAgICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAf/+ASw=',
    ),
  // np.save(f, np.asfortranarray(a.astype("<f4")))
  float32Fortran: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPGY0JywgJ2ZvcnRyYW5fb3JkZXInOiBUcnVlLCAnc2hhcGUnOiAoMiwgMywgNCksIH0gICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAIC/AAAAPwAAAL8AAIA/AAAAAAAA' +
        'wD8AAGC/AAAgPwAAwL4AAJA/AAAAPgAA0D8AAEC/AABAPwAAgL4AAKA/AACAPgAA4D8AACC/AABgPwAAAL4AALA/AADAPgAA8D8=',
    ),
  // np.save(f, np.asfortranarray(a.astype(">f4")))
  float32FortranBigEndian: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPmY0JywgJ2ZvcnRyYW5fb3JkZXInOiBUcnVlLCAnc2hhcGUnOiAoMiwgMywgNCksIH0gICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAq/gAAAPwAAAL8AAAA/gAAAAAAAAD/A' +
        'AAC/YAAAPyAAAL7AAAA/kAAAPgAAAD/QAAC/QAAAP0AAAL6AAAA/oAAAPoAAAD/gAAC/IAAAP2AAAL4AAAA/sAAAPsAAAD/wAAA=',
    ),
  // np.save(f, np.array([[1, -2**63], [2**63 - 1, 0]], "<i8"))
  int64: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPGk4JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDIpLCB9ICAgICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoBAAAAAAAAAAAAAAAAAACA////////' +
        '/38AAAAAAAAAAA==',
    ),
  // np.save(f, np.array([2**64 - 1], "<u8"))
  uint64: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPHU4JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDEsKSwgfSAgICAgICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAr//////////w==',
    ),
  // np.save(f, np.array([[True, False, True]]))
  bool: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnfGIxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDEsIDMpLCB9ICAgICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoBAAE=',
    ),
  // np.save(f, np.float32(7))
  scalar: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPGY0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKCksIH0gICAgICAgICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAOBA',
    ),
  // np.save(f, np.zeros((0, 3), "<f4"))
  empty: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPGY0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDAsIDMpLCB9ICAgICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAo=',
    ),
  // write_array(f, a.astype("<f4"), version=(2, 0))
  version2: () =>
    decode(
      'k05VTVBZAgB0AAAAeydkZXNjcic6ICc8ZjQnLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNlLCAnc2hhcGUnOiAoMiwgMywgNCksIH0g' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAIC/AABgvwAAQL8AACC/AAAAvwAA' +
        'wL4AAIC+AAAAvgAAAAAAAAA+AACAPgAAwD4AAAA/AAAgPwAAQD8AAGA/AACAPwAAkD8AAKA/AACwPwAAwD8AANA/AADgPwAA8D8=',
    ),
  // write_array(f, a.astype("<f4"), version=(3, 0))
  version3: () =>
    decode(
      'k05VTVBZAwB0AAAAeydkZXNjcic6ICc8ZjQnLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNlLCAnc2hhcGUnOiAoMiwgMywgNCksIH0g' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAIC/AABgvwAAQL8AACC/AAAAvwAA' +
        'wL4AAIC+AAAAvgAAAAAAAAA+AACAPgAAwD4AAAA/AAAgPwAAQD8AAGA/AACAPwAAkD8AAKA/AACwPwAAwD8AANA/AADgPwAA8D8=',
    ),
  // np.save(f, np.zeros(2, "<c8"))
  complex: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPGM4JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsKSwgfSAgICAgICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAAAAAAAAAAAAAAAAAAA',
    ),
  // np.save(f, np.array(["a", "bc"]))
  text: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnPFUyJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsKSwgfSAgICAgICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAphAAAAAAAAAGIAAABjAAAA',
    ),
  // np.save(f, np.array([None, 1], dtype=object))
  object: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiAnfE8nLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNlLCAnc2hhcGUnOiAoMiwpLCB9ICAgICAgICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAqAA2NudW1weS5jb3JlLm11bHRpYXJy' +
        'YXkKX3JlY29uc3RydWN0CnEAY251bXB5Cm5kYXJyYXkKcQFLAIVxAkMBYnEDh3EEUnEFKEsBSwKFcQZjbnVtcHkKZHR5cGUKcQdY' +
        'AgAAAE84cQiJiIdxCVJxCihLA1gBAAAAfHELTk5OSv////9K/////0s/dHEMYoldcQ0oTksBZXRxDmIu',
    ),
  // np.save(f, np.zeros(2, [("x", "<f4"), ("y", "<i2")]))
  structured: () =>
    decode(
      'k05VTVBZAQB2AHsnZGVzY3InOiBbKCd4JywgJzxmNCcpLCAoJ3knLCAnPGkyJyldLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNlLCAn' +
        'c2hhcGUnOiAoMiwpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAAAAAAAAAAAAAA=',
    ),
  // np.savez(f, query=a.astype("<f4"), mask=a > 0)
  npz: () =>
    decode(
      'UEsDBC0AAAAAAAAAIQDKzSyo//////////8JABQAcXVlcnkubnB5AQAQAOAAAAAAAAAA4AAAAAAAAACTTlVNUFkBAHYAeydkZXNj' +
        'cic6ICc8ZjQnLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNlLCAnc2hhcGUnOiAoMiwgMywgNCksIH0gICAgICAgICAgICAgICAgICAg' +
        'ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgCgAAgL8AAGC/AABAvwAAIL8AAAC/AADAvgAAgL4AAAC+AAAAAAAA' +
        'AD4AAIA+AADAPgAAAD8AACA/AABAPwAAYD8AAIA/AACQPwAAoD8AALA/AADAPwAA0D8AAOA/AADwP1BLAwQtAAAAAAAAACEAV4ti' +
        'Mv//////////CAAUAG1hc2subnB5AQAQAJgAAAAAAAAAmAAAAAAAAACTTlVNUFkBAHYAeydkZXNjcic6ICd8YjEnLCAnZm9ydHJh' +
        'bl9vcmRlcic6IEZhbHNlLCAnc2hhcGUnOiAoMiwgMywgNCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg' +
        'ICAgICAgICAgICAgICAgICAgCgAAAAAAAAAAAAEBAQEBAQEBAQEBAQEBAVBLAQItAy0AAAAAAAAAIQDKzSyo4AAAAOAAAAAJAAAA' +
        'AAAAAAAAAACAAQAAAABxdWVyeS5ucHlQSwECLQMtAAAAAAAAACEAV4tiMpgAAACYAAAACAAAAAAAAAAAAAAAgAEbAQAAbWFzay5u' +
        'cHlQSwUGAAAAAAIAAgBtAAAA7QEAAAAA',
    ),
  // np.savez_compressed(f, query=a.astype("<f4"), labels=np.array(["x"]))
  npzCompressed: () =>
    decode(
      'UEsDBC0AAAAIAAAAIQDKzSyo//////////8JABQAcXVlcnkubnB5AQAQAOAAAAAAAAAAiQAAAAAAAACb7BfqGxDJyFDGUK2eklqc' +
        'XKRupaBuk2airqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFqQC+RpGOgrGOgommjoKtQrkAS4Ghob9DAwJQOwAxApAzADEB/YB' +
        'xYGYAYRBwA7IB+IDQMxgD1QHxA5AnADEDUA8AYgXAPEGID4AxBeA+AEQf7AHAFBLAwQtAAAACAAAACEAP7w5G///////////CgAU' +
        'AGxhYmVscy5ucHkBABAAhAAAAAAAAABIAAAAAAAAAJvsF+obEMnIUMZQrZ6SWpxcpG6loG4Taqiuo6Cell9UUpSYF59flJIKEndL' +
        'zClOBYoXZyQWpAL5GoY6mjoKtQoUAK4KBgYGAFBLAQItAy0AAAAIAAAAIQDKzSyoiQAAAOAAAAAJAAAAAAAAAAAAAACAAQAAAABx' +
        'dWVyeS5ucHlQSwECLQMtAAAACAAAACEAP7w5G0gAAACEAAAACgAAAAAAAAAAAAAAgAHEAAAAbGFiZWxzLm5weVBLBQYAAAAAAgAC' +
        'AG8AAABIAQAAAAA=',
    ),
};

/** @param {string} base64 */
function decode(base64) {
  // a buffer of its own, so that alignment does not depend on Node's pool
  return new Uint8Array(Buffer.from(base64, 'base64'));
}
