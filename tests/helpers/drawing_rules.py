"""What must hold of every drawing."""


def is_whole(fig):
    """Whether everything in a Figure lies within its edges."""
    fig.canvas.draw()
    box, (width, height) = fig.get_tightbbox(), fig.get_size_inches()
    return box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
