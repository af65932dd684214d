/* image_encode.h: image files of many flavours, written with the libraries themselves. */
#ifndef LS_TESTS_IMAGE_ENCODE_H
#define LS_TESTS_IMAGE_ENCODE_H

typedef enum image_flavour {
    JPEG_PLAIN, /* 4:2:0 */
    JPEG_FULL,  /* 4:4:4 */
    JPEG_GREY,
    JPEG_PROGRESSIVE,
    JPEG_RESTART, /* restart markers */
    JPEG_CMYK,
    PNG_RGB,
    PNG_GREY_INTERLACED,
    PNG_PALETTE_ALPHA,
    PNG_RGBA_16,
    IMAGE_FLAVOURS
} image_flavour;

/* A smooth coloured image of the given size. */
void image_encode(const char *path, image_flavour flavour, int height, int width);

#endif
